#include "pipeline/feed/frame_masker.hpp"

extern "C" {
#include <libavutil/buffer.h>
}

#include <string>
#include <utility>

#include "pipeline/base/failure.hpp"

namespace framelane {
namespace {

/// A view to write through, of memory that is the frame's alone.
ImageView writable(const ConstImageView& image) {
  ImageView view{image.format, image.width, image.height, {}};
  for (std::size_t i = 0; i < kMaxPlanes; ++i) {
    view.planes[i] = {const_cast<std::uint8_t*>(image.planes[i].data), image.planes[i].pitch};
  }
  return view;
}

}  // namespace

bool FrameMasker::apply(InputFrame& frame) {
  if (shapes_.empty()) return true;
  prepare(frame);
  if (frame.memory == FrameMemory::kDevice) return stage_.cover(mask_, writable(frame.image));
  if (frame.loan == nullptr && av_buffer_is_writable(frame.buffer.get()) != 0) {
    mask_->apply(writable(frame.image));
    return true;
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

/// Makes the mask for frames like this one, unless it is the last frame's.
void FrameMasker::prepare(const InputFrame& frame) {
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

}  // namespace framelane
