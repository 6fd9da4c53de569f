#include "pipeline/packets/snapshot_tap.hpp"

#include <new>
#include <utility>

namespace framelane {

void SnapshotTap::give(const AVFrame& frame) {
  FramePtr reference = make_frame();
  if (av_frame_ref(reference.get(), &frame) < 0) return;  // memory is short: who waits gets none
  std::shared_ptr<const AVFrame> shared(reference.release(), AvDeleter());
  const std::lock_guard lock(mutex_);
  if (waiting_ == 0) return;
  frame_ = std::move(shared);
  ++count_;
  wanted_ = false;
  given_.notify_all();
}

void SnapshotTap::keep(const AVPacket& keyframe, const MediaFormatRef& format, bool copied) {
  const std::lock_guard lock(mutex_);
  if (!keyframe_.packet) keyframe_.packet = make_packet();
  av_packet_unref(keyframe_.packet.get());
  if (av_packet_ref(keyframe_.packet.get(), &keyframe) < 0) throw std::bad_alloc();
  keyframe_.format = format;
  keyframe_.copied = copied;
}

std::shared_ptr<const AVFrame> SnapshotTap::wait_frame(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  const std::uint64_t before = count_;
  ++waiting_;
  wanted_ = true;
  const bool came = given_.wait_for(lock, timeout, [&] { return count_ != before; });
  std::shared_ptr<const AVFrame> frame = came ? frame_ : nullptr;
  if (--waiting_ == 0) {
    frame_.reset();
    wanted_ = false;
  }
  return frame;
}

SnapshotTap::Keyframe SnapshotTap::keyframe() const {
  const std::lock_guard lock(mutex_);
  Keyframe copy{.packet = nullptr, .format = keyframe_.format, .copied = keyframe_.copied};
  if (!keyframe_.packet || keyframe_.packet->data == nullptr) return copy;
  copy.packet = make_packet();
  if (av_packet_ref(copy.packet.get(), keyframe_.packet.get()) < 0) throw std::bad_alloc();
  return copy;
}

bool SnapshotTap::may_decode(std::chrono::steady_clock::time_point now,
                             std::chrono::milliseconds pause) {
  const std::lock_guard lock(mutex_);
  if (decoded_at_ && now - *decoded_at_ < pause) return false;
  decoded_at_ = now;
  return true;
}

}  // namespace framelane
