#include "kernels/cuda/overlay.hpp"

#include <algorithm>

#include "kernels/cuda/kernel.hpp"

namespace framelane {
namespace {

using namespace cuda;

/// Draws an overlay over rows of a frame. A thread's turn is a byte of a row; planes are layers.
struct Blend {
  struct Plane {
    const std::uint8_t* codes;
    const std::uint8_t* weights;
    std::uint8_t* to;  ///< the first row's first byte
    std::ptrdiff_t pitch;
    int row_bytes;
    int rows;
  };
  Plane planes[kMaxPlanes];

  FRAMELANE_HD void operator()(ThreadIndex thread) const {
    const Plane& plane = planes[thread.z];
    const int x = static_cast<int>(thread.x);
    const int y = static_cast<int>(thread.y);
    if (x >= plane.row_bytes || y >= plane.rows) return;
    const int i = y * plane.row_bytes + x;
    const int weight = plane.weights[i];
    if (weight == 0) return;
    std::uint8_t& to = plane.to[y * plane.pitch + x];
    to = static_cast<std::uint8_t>((weight * plane.codes[i] + (255 - weight) * to + 127) / 255);
  }
};

}  // namespace

cudaError_t enqueue_blend(const Overlay& overlay, const std::uint8_t* bytes, const ImageView& frame,
                          int row_begin, int row_end, cudaStream_t stream) {
  Blend body{};
  int columns = 0;
  int lines = 0;
  const int plane_count = info(overlay.format()).plane_count;
  for (int i = 0; i < plane_count; ++i) {
    const Overlay::Plane& place = overlay.planes()[static_cast<std::size_t>(i)];
    const auto [begin, end] = overlay_rows(overlay, i, row_begin, row_end);
    const auto offset = static_cast<std::size_t>(begin) * static_cast<std::size_t>(place.row_bytes);
    body.planes[i] = {bytes + place.codes + offset,
                      bytes + place.weights + offset,
                      frame.row(i, place.top + begin) + place.left,
                      frame.planes[i].pitch,
                      place.row_bytes,
                      end - begin};
    columns = std::max(columns, place.row_bytes);
    lines = std::max(lines, end - begin);
  }
  if (columns == 0 || lines <= 0) return cudaSuccess;
  return launch<Residency::kAny>(columns, lines, plane_count, stream, body);
}

cudaError_t load_blend() { return load<Residency::kAny, Blend>(); }

}  // namespace framelane
