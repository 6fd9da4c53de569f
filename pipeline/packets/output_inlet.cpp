#include "pipeline/packets/output_inlet.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace framelane {

OutputInlet::OutputInlet(int capacity, OutputStats& stats, bool blocks, TakesAudio takes_audio,
                         std::optional<StreamKind> only)
    : stats_(stats),
      takes_audio_(std::move(takes_audio)),
      only_(only),
      queue_(static_cast<std::size_t>(std::max(capacity, 1))),
      blocks_(blocks) {}

void OutputInlet::set_capacity(int capacity) {
  queue_.set_capacity(static_cast<std::size_t>(std::max(capacity, 1)));
}

void OutputInlet::push(const AVPacket& packet, StreamKind stream, const MediaFormatRef& format,
                       const std::stop_token& stop) {
  if (!takes(stream, *format)) return;
  const bool keyframe = is_keyframe(packet, stream);
  const bool counts = stream == only_.value_or(stream);
  const auto drop = [&](PacketDrop reason) {
    if (counts) stats_.drop(reason);
  };
  if (overflowed_ && !keyframe) {
    if (counts) stats_.drop_dependent();
    return;
  }
  switch (blocks_ ? queue_.push(packet, stream, format, stop)
                  : queue_.try_push(packet, stream, format)) {
    case PacketQueue::Push::kQueued:
      if (keyframe) overflowed_ = false;
      break;
    case PacketQueue::Push::kFull:
      overflowed_ = true;
      drop(PacketDrop::kQueueFull);
      break;
    case PacketQueue::Push::kClosed:
      drop(closed_as_);
      break;
  }
  show_length();
}

PacketQueue::Pop OutputInlet::pop(MediaPacket& packet, std::chrono::milliseconds timeout,
                                  const std::stop_token& stop) {
  const PacketQueue::Pop popped = queue_.pop(packet, timeout, stop);
  if (popped == PacketQueue::Pop::kPacket) ++taken_;
  show_length();
  return popped;
}

void OutputInlet::opened() {
  resume_wanted_ = false;
  queue_.set_patient(true);
}

void OutputInlet::end(PacketDrop reason) {
  closed_as_ = reason;
  queue_.close();
  stats_.drop(reason, queue_.clear(only_));
  const std::lock_guard lock(mutex_);
  if (!std::exchange(ended_, true)) stats_.queue_packets = 0;
}

void OutputInlet::show_length() {
  const std::lock_guard lock(mutex_);
  if (!ended_) stats_.queue_packets = static_cast<std::uint32_t>(queue_.size());
}

}  // namespace framelane
