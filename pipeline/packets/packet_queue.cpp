#include "pipeline/packets/packet_queue.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace framelane {

PacketQueue::PacketQueue(std::size_t capacity, std::size_t most_bytes)
    : capacity_(std::max<std::size_t>(capacity, 1)), slots_(capacity_), most_bytes_(most_bytes) {
  for (MediaPacket& slot : slots_) slot.packet = make_packet();
}

void PacketQueue::set_capacity(std::size_t capacity) {
  capacity = std::max<std::size_t>(capacity, 1);
  std::lock_guard lock(mutex_);
  std::vector<MediaPacket> slots(std::max(capacity, count_));
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (i < count_) {
      slots[i] = std::move(slots_[(first_ + i) % slots_.size()]);
    } else {
      slots[i].packet = make_packet();
    }
  }
  slots_ = std::move(slots);
  first_ = 0;
  capacity_ = capacity;
  changed_.notify_all();
}

PacketQueue::Push PacketQueue::try_push(const AVPacket& packet, StreamKind stream,
                                        const MediaFormatRef& format) {
  std::lock_guard lock(mutex_);
  if (closed_) return Push::kClosed;
  if (!has_room(packet)) return Push::kFull;
  put(packet, stream, format);
  return Push::kQueued;
}

PacketQueue::Push PacketQueue::push(const AVPacket& packet, StreamKind stream,
                                    const MediaFormatRef& format, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  const bool ready =
      changed_.wait(lock, stop, [&] { return closed_ || has_room(packet) || !patient_; });
  if (!ready || closed_) return Push::kClosed;
  if (!has_room(packet)) return Push::kFull;
  put(packet, stream, format);
  return Push::kQueued;
}

bool PacketQueue::has_room(const AVPacket& packet) const {
  if (count_ < kAlwaysFit) return count_ < capacity_;
  return count_ < capacity_ && bytes_ + size_in_bytes(packet) <= most_bytes_;
}

void PacketQueue::put(const AVPacket& packet, StreamKind stream, const MediaFormatRef& format) {
  MediaPacket& slot = slots_[(first_ + count_) % slots_.size()];
  if (av_packet_ref(slot.packet.get(), &packet) < 0) throw std::bad_alloc();
  slot.stream = stream;
  slot.format = format;
  slot.queued_at = std::chrono::steady_clock::now();
  ++count_;
  bytes_ += size_in_bytes(packet);
  changed_.notify_all();
}

PacketQueue::Pop PacketQueue::pop(MediaPacket& out, std::chrono::milliseconds timeout,
                                  const std::stop_token& stop) {
  if (!out.packet) out.packet = make_packet();
  av_packet_unref(out.packet.get());
  out.format.reset();

  std::unique_lock lock(mutex_);
  if (stop.stop_requested()) return Pop::kStopped;
  const bool ready = changed_.wait_for(lock, stop, timeout, [&] { return closed_ || count_ > 0; });
  if (stop.stop_requested()) return Pop::kStopped;
  if (!ready) return Pop::kTimeout;
  if (count_ == 0) return Pop::kEnd;
  std::swap(out, slots_[first_]);
  first_ = (first_ + 1) % slots_.size();
  --count_;
  bytes_ -= size_in_bytes(*out.packet);
  changed_.notify_all();
  return Pop::kPacket;
}

void PacketQueue::set_patient(bool patient) {
  std::lock_guard lock(mutex_);
  patient_ = patient;
  changed_.notify_all();
}

void PacketQueue::close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

std::size_t PacketQueue::clear(std::optional<StreamKind> of) {
  std::lock_guard lock(mutex_);
  std::size_t forgotten = 0;
  for (; count_ > 0; --count_) {
    MediaPacket& slot = slots_[first_];
    if (slot.stream == of.value_or(slot.stream)) ++forgotten;
    av_packet_unref(slot.packet.get());
    slot.format.reset();
    first_ = (first_ + 1) % slots_.size();
  }
  bytes_ = 0;
  changed_.notify_all();
  return forgotten;
}

std::size_t PacketQueue::room() const {
  std::lock_guard lock(mutex_);
  return capacity_ - std::min(capacity_, count_);
}

std::size_t PacketQueue::size() const {
  std::lock_guard lock(mutex_);
  return count_;
}

}  // namespace framelane
