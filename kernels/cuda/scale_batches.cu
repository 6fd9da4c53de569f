#include "kernels/cuda/scale_batches.cuh"

#include <algorithm>

#include "kernels/cuda/luma_count.hpp"
#include "kernels/cuda/tile_group.cuh"
#include "kernels/picture_part.hpp"

namespace framelane {

using namespace cuda;

ScaleInBatches::ScaleInBatches(const Conversion& conversion)
    : conversion_(conversion), background_(background_codes(conversion)), samples_(conversion) {}

std::size_t ScaleInBatches::frames_a_launch() const { return kMostFramesOfTiles; }

cudaError_t ScaleInBatches::enqueue(std::span<const CudaFrame> frames, int row_begin, int row_end,
                                    cudaStream_t stream) const {
  constexpr std::size_t kBatch = kMostFramesOfTiles;
  for (; !frames.empty(); frames = frames.subspan(std::min(frames.size(), kBatch))) {
    const auto batch = frames.first(std::min(frames.size(), kBatch));
    cudaError_t error = enqueue_picture(batch, row_begin, row_end, stream);
    for (const CudaFrame& frame : batch) {
      if (error == cudaSuccess && !is_filled(frame.target)) {
        error = enqueue_rest(frame, row_begin, row_end, stream);
      }
      if (error == cudaSuccess && frame.luma_counts != nullptr) {
        error = enqueue_luma_count(as_const(frame.target), row_begin, row_end, frame.luma_counts,
                                   stream);
      }
    }
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

cudaError_t ScaleInBatches::load(bool counts_luma) const {
  cudaError_t error = cuda::load<Residency::kAny, ScaleRest>();
  if (error == cudaSuccess) error = load_kernels();
  return error == cudaSuccess && counts_luma ? load_luma_count() : error;
}

std::array<ScalePlace, 2> ScaleInBatches::places() const {
  const Rect& place = conversion_.scaling->place;
  const PixelFormatInfo& target = info(conversion_.target);
  const int across = target.chroma_half_width ? 1 : 0;
  const int down = target.chroma_half_height ? 1 : 0;
  return {ScalePlace{place.x, place.y, place.width, place.height},
          {place.x >> across, place.y >> down, (place.width + across) >> across,
           (place.height + down) >> down}};
}

bool ScaleInBatches::is_filled(const ImageView& target) const {
  return conversion_.scaling->place == Rect{0, 0, target.width, target.height} &&
         (info(target.format).gray || has_chroma());
}

cudaError_t ScaleInBatches::enqueue_rest(const CudaFrame& frame, int row_begin, int row_end,
                                         cudaStream_t stream) const {
  const PixelFormatInfo& target = info(conversion_.target);
  ScaleRest body{};
  locate(frame.target, body.to);
  std::ranges::copy(places(), body.places);
  std::ranges::copy(background_, body.background);
  body.has_chroma = has_chroma();
  const int down = target.chroma_half_height ? 1 : 0;
  body.luma_begin = row_begin;
  body.luma_rows = row_end - row_begin;
  body.chroma_begin = row_begin >> down;
  const int chroma_rows = target.gray ? 0 : ((row_end + down) >> down) - body.chroma_begin;
  return launch<Residency::kAny>(frame.target.width, body.luma_rows + chroma_rows, 1, stream, body);
}

}  // namespace framelane
