#include "kernels/cuda/overlay.hpp"

#include <algorithm>
#include <array>
#include <climits>

#include "kernels/cuda/kernel.hpp"

namespace framelane {
namespace {

using namespace cuda;

constexpr int kThreads = static_cast<int>(kBlockThreads);

/// Draws overlays over rows of frames. A thread's turn is a byte of a row; rows begin with blocks.
struct Blends {
  /// Rows of one plane of an overlay.
  struct Part {
    const std::uint8_t* codes;
    std::uint8_t* to;  ///< the first row's first byte
    int pitch;
    int weights;  ///< bytes from the codes to the weights
    int row_bytes;
    int first_block;
  };
  static constexpr int kMostParts = 32;
  static constexpr int kMostBlocks = INT_MAX / kThreads;  // a frame has 2^23 at most

  int part_count;
  Part parts[kMostParts];

  FRAMELANE_HD static int blocks_of_row(int row_bytes) {
    return (row_bytes + kThreads - 1) / kThreads;
  }
  FRAMELANE_HD void operator()(ThreadIndex thread) const {
    int block = static_cast<int>(thread.x) / kThreads;
    int p = 0;
    while (p + 1 < part_count && parts[p + 1].first_block <= block) ++p;
    const Part& part = parts[p];
    block -= part.first_block;
    const int blocks = blocks_of_row(part.row_bytes);
    const int y = block / blocks;
    const int x = block % blocks * kThreads + static_cast<int>(thread.x) % kThreads;
    if (x >= part.row_bytes) return;
    const std::uint8_t* const code = part.codes + y * part.row_bytes + x;
    const int weight = code[part.weights];
    if (weight == 0) return;
    std::uint8_t& to = part.to[static_cast<std::ptrdiff_t>(y) * part.pitch + x];
    to = static_cast<std::uint8_t>((weight * *code + (255 - weight) * to + 127) / 255);
  }
};

/// Up to one for each plane.
struct Parts {
  std::array<Blends::Part, kMaxPlanes> parts{};  ///< without their first blocks
  std::array<int, kMaxPlanes> blocks{};
  int count = 0;
  int block_count = 0;
};

Parts parts_of(const CudaDrawing& drawing) {
  const Overlay& overlay = *drawing.overlay;
  Parts found;
  for (int i = 0; i < info(overlay.format()).plane_count; ++i) {
    const Overlay::Plane& place = overlay.planes()[static_cast<std::size_t>(i)];
    const auto [begin, end] = overlay_rows(overlay, i, drawing.row_begin, drawing.row_end);
    if (begin >= end) continue;
    const auto offset = static_cast<std::size_t>(begin) * static_cast<std::size_t>(place.row_bytes);
    const auto k = static_cast<std::size_t>(found.count++);
    found.parts[k] = {.codes = drawing.bytes + place.codes + offset,
                      .to = drawing.frame.row(i, place.top + begin) + place.left,
                      .pitch = static_cast<int>(drawing.frame.planes[i].pitch),
                      .weights = static_cast<int>(place.weights - place.codes),
                      .row_bytes = place.row_bytes,
                      .first_block = 0};
    found.blocks[k] = (end - begin) * Blends::blocks_of_row(place.row_bytes);
    found.block_count += found.blocks[k];
  }
  return found;
}

/// True if one lies over the other. The first plane tells, since places are whole samples of
/// chroma.
bool overlap(const CudaDrawing& a, const CudaDrawing& b) {
  if (a.frame.planes[0].data != b.frame.planes[0].data) return false;
  const Overlay::Plane& p = a.overlay->planes()[0];
  const Overlay::Plane& q = b.overlay->planes()[0];
  return p.left < q.left + q.row_bytes && q.left < p.left + p.row_bytes && p.top < q.top + q.rows &&
         q.top < p.top + p.rows;
}

}  // namespace

cudaError_t enqueue_blends(std::span<const CudaDrawing> drawings, cudaStream_t stream) {
  Blends body{};
  int blocks = 0;
  const auto launch_parts = [&] {
    if (blocks == 0) return cudaSuccess;
    return launch<Residency::kAny>(blocks * kThreads, 1, 1, stream, body);
  };
  std::size_t first = 0;  // of this launch
  for (std::size_t i = 0; i < drawings.size(); ++i) {
    const Parts more = parts_of(drawings[i]);
    const auto lies_over = [&](const CudaDrawing& other) { return overlap(drawings[i], other); };
    if (body.part_count + more.count > Blends::kMostParts ||
        more.block_count > Blends::kMostBlocks - blocks ||
        std::ranges::any_of(drawings.subspan(first, i - first), lies_over)) {
      if (const cudaError_t error = launch_parts(); error != cudaSuccess) return error;
      first = i;
      body.part_count = blocks = 0;
    }
    for (std::size_t k = 0; k < static_cast<std::size_t>(more.count); ++k) {
      Blends::Part& part = body.parts[body.part_count++];
      part = more.parts[k];
      part.first_block = blocks;
      blocks += more.blocks[k];
    }
  }
  return launch_parts();
}

cudaError_t load_blend() { return load<Residency::kAny, Blends>(); }

}  // namespace framelane
