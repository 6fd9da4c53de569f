#include "pipeline/packets/snapshot_tap.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace framelane {

void SnapshotTap::give(const AVFrame& frame, std::int64_t time_us) {
  FramePtr reference(av_frame_clone(&frame));
  if (!reference) return;  // memory is short: who waits gets none
  std::shared_ptr<const AVFrame> shared(reference.release(), AvDeleter());
  const std::lock_guard lock(mutex_);
  if (waiting_ == 0 || masks_ != expected_masks_ || !shows(time_us)) return;
  frame_ = std::move(shared);
  ++count_;
  wanted_ = false;
  given_.notify_all();
}

void SnapshotTap::keep(const AVPacket& keyframe, const MediaFormatRef& format, bool copied,
                       std::int64_t time_us) {
  const std::lock_guard lock(mutex_);
  if (!shows(time_us) || (!copied && masks_ != expected_masks_)) return;
  Kept& kept = kept_[copied ? 1 : 0];
  kept.packet.reset(av_packet_clone(&keyframe));
  if (!kept.packet) return;  // memory is short: none is shown until the next one
  kept.format = format;
  kept.count = ++kept_count_;
}

bool SnapshotTap::shows(std::int64_t time_us) const { return !closed_ && time_us >= from_us_; }

void SnapshotTap::forget(std::int64_t from_us) {
  from_us_ = std::max(from_us_, from_us);
  frame_.reset();
  for (Kept& kept : kept_) {
    if (kept.packet) av_packet_unref(kept.packet.get());
    kept.format.reset();
  }
}

std::uint64_t SnapshotTap::expect_masks() {
  const std::lock_guard lock(mutex_);
  forget(from_us_);
  return ++expected_masks_;
}

void SnapshotTap::masks_begin(std::uint64_t masks, std::int64_t time_us) {
  const std::lock_guard lock(mutex_);
  masks_ = masks;
  forget(time_us);
}

void SnapshotTap::source_begins(std::int64_t time_us) {
  const std::lock_guard lock(mutex_);
  forget(time_us);
}

void SnapshotTap::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  forget(from_us_);
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

SnapshotTap::Keyframe SnapshotTap::keyframe(bool masked) const {
  const std::lock_guard lock(mutex_);
  const auto& [encoded, copied] = kept_;
  const Kept& kept = !masked && copied.count > encoded.count ? copied : encoded;
  if (!kept.packet || kept.packet->data == nullptr) return {};
  Keyframe copy{.packet = make_packet(), .format = kept.format};
  if (av_packet_ref(copy.packet.get(), kept.packet.get()) < 0) throw std::bad_alloc();
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
