#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>
#include <stop_token>
#include <vector>

#include "pipeline/packets/media.hpp"

namespace framelane {

/// A packet on its way to an output, with the format it belongs to.
struct MediaPacket {
  PacketPtr packet;  ///< made once and used again: only the data it refers to changes
  StreamKind stream = StreamKind::kVideo;
  MediaFormatRef format = nullptr;
  std::chrono::steady_clock::time_point queued_at = {};
};

inline std::size_t size_in_bytes(const AVPacket& packet) {
  return static_cast<std::size_t>(packet.size);
}

/// The queue between an encode (or the source, for copied packets) and one output's thread. Bounded
/// in packets, and in bytes as well, since packets of raw and lossless video have megabytes. Slots
/// are allocated by the constructor and by set_capacity alone. Any number of producer threads, one
/// consumer thread.
class PacketQueue {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{256} << 20;
  /// So many packets fit, however large they are (but never more than the capacity).
  static constexpr std::size_t kAlwaysFit = 4;

  explicit PacketQueue(std::size_t capacity, std::size_t most_bytes = kMostBytes);

  enum class Push { kQueued, kFull, kClosed };
  /// Does not wait. kFull if no slot is free, or if the packet would make too many bytes.
  Push try_push(const AVPacket& packet, StreamKind stream, const MediaFormatRef& format);
  /// Waits for room while the queue is patient (set_patient); then kFull. kClosed also if stopped.
  Push push(const AVPacket& packet, StreamKind stream, const MediaFormatRef& format,
            const std::stop_token& stop);

  enum class Pop { kPacket, kTimeout, kEnd, kStopped };
  /// Waits for a packet and swaps it into `out`; what `out` held is released. kEnd: closed and
  /// empty.
  Pop pop(MediaPacket& out, std::chrono::milliseconds timeout, const std::stop_token& stop);

  /// Whether push() waits for room; at first it does. The consumer says false while it cannot take
  /// packets, and producers that wait return kFull at once.
  void set_patient(bool patient);
  /// The queue holds so many packets from now on. Those that are in it stay, however many they are.
  void set_capacity(std::size_t capacity);
  /// Nothing more can be pushed. Queued packets can still be popped.
  void close();
  /// Removes all packets; returns how many there were (of this stream).
  std::size_t clear(std::optional<StreamKind> of = std::nullopt);
  std::size_t size() const;
  /// How many packets more can be queued, if they are not too large.
  std::size_t room() const;

 private:
  bool has_room(const AVPacket& packet) const;
  void put(const AVPacket& packet, StreamKind stream, const MediaFormatRef& format);

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::size_t capacity_;
  std::vector<MediaPacket> slots_;  // capacity_ at least
  std::size_t first_ = 0;
  std::size_t count_ = 0;
  const std::size_t most_bytes_;
  std::size_t bytes_ = 0;  // of the packets in the queue
  bool closed_ = false;
  bool patient_ = true;
};

}  // namespace framelane
