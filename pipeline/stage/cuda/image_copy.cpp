#include "pipeline/stage/cuda/image_copy.hpp"

#include <cstdlib>

namespace framelane {
namespace {

/// True if rows go top down and each plane begins where the one before it ends. Then the image is
/// one piece of memory, in which only the padding of rows lies between pixels.
template <typename Byte>
bool is_one_block(const BasicImageView<Byte>& image) {
  for (int plane = 0; plane < info(image.format).plane_count; ++plane) {
    const auto& [data, pitch] = image.planes[plane];
    if (pitch < 0) return false;
    if (plane + 1 == info(image.format).plane_count) break;
    if (data + pitch * plane_rows(image.format, plane, image.height) !=
        image.planes[plane + 1].data) {
      return false;
    }
  }
  return true;
}

bool have_equal_pitches(const ConstImageView& from, const ImageView& to) {
  for (int plane = 0; plane < info(from.format).plane_count; ++plane) {
    if (from.planes[plane].pitch != to.planes[plane].pitch) return false;
  }
  return true;
}

}  // namespace

void copy_rows(const ConstImageView& from, const ImageView& to, int row_begin, int row_end,
               cudaMemcpyKind kind, StreamRef stream) {
  const PixelFormatInfo& format = info(from.format);
  if (row_begin == 0 && row_end == from.height && have_equal_pitches(from, to) &&
      is_one_block(from) && is_one_block(to)) {
    // One copy instead of one per plane: the GPU needs some microseconds between two copies.
    const int last = format.plane_count - 1;
    const std::uint8_t* const end = from.row(last, plane_rows(from.format, last, from.height) - 1) +
                                    plane_row_bytes(from.format, last, from.width);
    cuda::check(cudaMemcpyAsync(to.row(0, 0), from.row(0, 0),
                                static_cast<std::size_t>(end - from.row(0, 0)), kind, stream.get()),
                "cudaMemcpyAsync");
    return;
  }
  for (int plane = 0; plane < format.plane_count; ++plane) {
    const int step = format.planes[plane].log2_height_step;
    const int begin = row_begin >> step;
    const int end =
        row_end == from.height ? plane_rows(from.format, plane, from.height) : row_end >> step;
    if (begin >= end) continue;
    const std::ptrdiff_t from_pitch = from.planes[plane].pitch;
    const std::ptrdiff_t to_pitch = to.planes[plane].pitch;
    const std::size_t row_bytes = plane_row_bytes(from.format, plane, from.width);
    if ((from_pitch < 0) != (to_pitch < 0)) {  // CUDA cannot turn a picture over
      for (int y = begin; y < end; ++y) {
        cuda::check(
            cudaMemcpyAsync(to.row(plane, y), from.row(plane, y), row_bytes, kind, stream.get()),
            "cudaMemcpyAsync");
      }
      continue;
    }
    // In an image that is stored bottom up the last row comes first in memory.
    const int first = from_pitch < 0 ? end - 1 : begin;
    const auto rows = static_cast<std::size_t>(end - begin);
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
