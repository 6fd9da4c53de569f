#include "bench/product/stage_baselines.hpp"

#include <cstring>

#include "pipeline/stage/cuda/image_copy.hpp"

namespace framelane::bench {
namespace {

/// From the first byte of an image to its last. All images here have the same layout, so that one
/// copy takes the whole of it.
std::size_t whole(const ConstImageView& image) {
  const int plane = info(image.format).plane_count - 1;
  const std::uint8_t* const last =
      image.row(plane, plane_rows(image.format, plane, image.height) - 1);
  return static_cast<std::size_t>(last - image.row(0, 0)) +
         plane_row_bytes(image.format, plane, image.width);
}

}  // namespace

StageBaselines::StageBaselines(CudaContext& context, const Conversion& convert,
                               std::span<const PooledImage> frames)
    : convert_(convert),
      converter_(CudaConverter::make(convert)),
      frames_(frames),
      pinned_target_(allocate_image(targets_, convert.target, convert.width, convert.height)),
      pageable_source_(convert.source, convert.width, convert.height),
      pageable_target_(convert.target, convert.width, convert.height),
      images_(context, {&convert_, 1}, FrameMemory::kHost) {
  context.memory_stream().synchronize();
  const ConstImageView first = as_const(frames[0].image);
  std::memcpy(pageable_source_.image.row(0, 0), first.row(0, 0), whole(first));
}

void StageBaselines::pageable_default_stream() {
  frame_ = 0;
  default_stream(as_const(pageable_source_.image), pageable_target_.image);
}

void StageBaselines::pinned_default_stream() {
  frame_ = (frame_ + 1) % frames_.size();
  default_stream(as_const(frames_[frame_].image), pinned_target_.image);
}

void StageBaselines::eight_streams() {
  frame_ = (frame_ + 1) % frames_.size();
  const ConstImageView from = as_const(frames_[frame_].image);
  for (int part = 0; part < kStreams; ++part) {
    // Parts begin at multiples of 16 rows, so that the rows which a chroma filter takes together
    // are in one part.
    const auto row = [this](int of) {
      return of == kStreams ? convert_.height : convert_.height * of / kStreams / 16 * 16;
    };
    const int begin = row(part);
    const int end = row(part + 1);
    if (begin == end) continue;
    const CudaStream& stream = streams_[part];
    copy_rows(from, device_source(), begin, end, cudaMemcpyHostToDevice, stream);
    convert(begin, end, stream.get());
    copy_rows(as_const(device_target()), pinned_target_.image, begin, end, cudaMemcpyDeviceToHost,
              stream);
  }
  streams_.synchronize(kStreams);
  result_ = as_const(pinned_target_.image);
}

void StageBaselines::spoil_results() {
  spoil(pinned_target_.image);
  spoil(pageable_target_.image);
}

void StageBaselines::convert(int begin, int end, cudaStream_t stream) const {
  cuda::check(converter_->enqueue(as_const(device_source()), device_target(), begin, end, stream),
              "cudaLaunchKernel");
}

void StageBaselines::default_stream(const ConstImageView& from, const ImageView& to) {
  copy(device_source().row(0, 0), from.row(0, 0), whole(from), cudaMemcpyHostToDevice,
       cudaStreamLegacy);
  convert(0, convert_.height, cudaStreamLegacy);
  result_ = as_const(to);
  copy(to.row(0, 0), device_target().row(0, 0), whole(result_), cudaMemcpyDeviceToHost,
       cudaStreamLegacy);
  cuda::check(cudaStreamSynchronize(cudaStreamLegacy), "cudaStreamSynchronize");
}

}  // namespace framelane::bench
