#include "pipeline/cuda/image_copy.hpp"

#include <cassert>
#include <cstdlib>

namespace framelane {

void copy_rows(const ConstImageView& from, const ImageView& to, int row_begin, int row_end,
               cudaMemcpyKind kind, const CudaStream& stream) {
  const PixelFormatInfo& format = info(from.format);
  for (int plane = 0; plane < format.plane_count; ++plane) {
    const int step = format.planes[plane].log2_height_step;
    const int begin = row_begin >> step;
    const int end =
        row_end == from.height ? plane_rows(from.format, plane, from.height) : row_end >> step;
    if (begin >= end) continue;
    const std::ptrdiff_t from_pitch = from.planes[plane].pitch;
    const std::ptrdiff_t to_pitch = to.planes[plane].pitch;
    assert((from_pitch < 0) == (to_pitch < 0));
    // Of an image stored bottom up the last row comes first in memory.
    const int first = from_pitch < 0 ? end - 1 : begin;
    const auto rows = static_cast<std::size_t>(end - begin);
    const std::size_t row_bytes = plane_row_bytes(from.format, plane, from.width);
    const auto pitch = static_cast<std::size_t>(std::abs(from_pitch));
    if (from_pitch == to_pitch) {
      cuda::check(cudaMemcpyAsync(to.row(plane, first), from.row(plane, first),
                                  (rows - 1) * pitch + row_bytes, kind, stream.get()),
                  "cudaMemcpyAsync");
    } else {
      cuda::check(
          cudaMemcpy2DAsync(to.row(plane, first), static_cast<std::size_t>(std::abs(to_pitch)),
                            from.row(plane, first), pitch, row_bytes, rows, kind, stream.get()),
          "cudaMemcpy2DAsync");
    }
  }
}

}  // namespace framelane
