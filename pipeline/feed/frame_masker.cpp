#include "pipeline/feed/frame_masker.hpp"

extern "C" {
#include <libavutil/buffer.h>
}

#include <string>
#include <utility>

#include "pipeline/base/failure.hpp"

namespace framelane {

bool FrameMasker::set_shapes(const std::vector<MaskShape>& shapes) {
  if (shapes == shapes_) return false;
  shapes_ = shapes;
  format_.reset();
  mask_.reset();
  return true;
}

void FrameMasker::prepare(const InputFrame& frame) {
  if (shapes_.empty()) return;
  const Format format{frame.image.format, {frame.image.width, frame.image.height}, frame.color};
  if (format == format_) return;
  format_.reset();
  mask_ = std::make_shared<const PictureMask>(shapes_, format.layout, format.size, format.color);
  if (const int shape = mask_->first_without_cover(); shape >= 0) {
    throw FeedError(FeedFault::kConfiguration,
                    "mask[" + std::to_string(shape) + "] lies between the pixels of " +
                        std::to_string(format.size.width) + 'x' +
                        std::to_string(format.size.height) +
                        " and covers none; make its polygon larger, or remove it");
  }
  format_ = format;
}

bool FrameMasker::apply(InputFrame& frame, StageMasking stage) {
  if (mask_ == nullptr) return true;
  if (stage == StageMasking::kOnGpu) return false;
  if (frame.memory == FrameMemory::kHost && frame.loan == nullptr &&
      av_buffer_is_writable(frame.buffer.get()) != 0) {
    mask_->apply(as_writable(frame.image));
    return true;
  }
  if (stage == StageMasking::kCopy) return false;
  if (frame.memory != FrameMemory::kHost) {
    throw FeedError(FeedFault::kInternal, "a frame on a GPU has come that is not converted there");
  }
  PooledImage copy = copy_into(copies_, frame.image);
  require_unspoiled(frame);
  mask_->apply(copy.image);
  stats_.count(HostCopy::kMask);
  frame.image = as_const(copy.image);
  frame.buffer = std::move(copy.buffer);
  frame.loan = nullptr;
  return true;
}

}  // namespace framelane
