#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <stop_token>
#include <vector>

#include "pipeline/packets/media.hpp"

namespace framelane {

/// A packet on its way to an output, with the format it belongs to.
struct MediaPacket {
  PacketPtr packet;  ///< reused from packet to packet: references move, the AVPacket stays
  StreamKind stream = StreamKind::kVideo;
  MediaFormatRef format = nullptr;
  std::chrono::steady_clock::time_point queued_at = {};
};

/// Queue between an encode (or the source, for copies) and one output's thread, bounded in packets
/// and, since raw and lossless video has packets of megabytes, in bytes. Slots are allocated once.
/// Any number of producers, one consumer.
class PacketQueue {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{256} << 20;
  /// So many packets fit however large they are.
  static constexpr std::size_t kAlwaysFit = 4;

  explicit PacketQueue(std::size_t capacity, std::size_t most_bytes = kMostBytes);

  enum class Push { kQueued, kFull, kClosed };
  /// Never blocks: kFull when there is no slot, or too many bytes.
  Push try_push(const AVPacket& packet, StreamKind stream, const MediaFormatRef& format);
  /// Waits for room as long as the consumer makes progress, see set_patient(); kClosed also when
  /// stopped.
  Push push(const AVPacket& packet, StreamKind stream, const MediaFormatRef& format,
            std::stop_token stop);

  enum class Pop { kPacket, kTimeout, kEnd, kStopped };
  /// Waits for a packet and swaps it into `out`. kEnd: closed and empty.
  Pop pop(MediaPacket& out, std::chrono::milliseconds timeout, std::stop_token stop);

  /// Whether push() waits (as it does at first). A consumer that is in trouble says no: who waits
  /// is released with kFull.
  void set_patient(bool patient);
  /// No more pushes; what is queued can still be popped.
  void close();
  /// Forgets what is queued and returns how many packets that were.
  std::size_t clear();
  std::size_t size() const;

 private:
  bool has_room(const AVPacket& packet) const;
  void put(const AVPacket& packet, StreamKind stream, const MediaFormatRef& format);

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<MediaPacket> slots_;
  std::size_t first_ = 0;
  std::size_t count_ = 0;
  const std::size_t most_bytes_;
  std::size_t bytes_ = 0;  // of the packets in the queue
  bool closed_ = false;
  bool patient_ = true;
};

}  // namespace framelane
