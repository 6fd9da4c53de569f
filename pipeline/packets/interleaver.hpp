#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "pipeline/packets/packet_queue.hpp"

namespace framelane {

/// Puts an output's audio and video into the order of their decoding times,
/// before it is decided where a file ends: audio is copied past the encoder and
/// comes earlier than its video, so that without this a segment would get the
/// audio of the next one. Video alone passes straight through. One thread.
class Interleaver {
 public:
  /// Takes the packet; `packet` gets an unused one in exchange. `has_audio`:
  /// video is accompanied.
  void add(MediaPacket& packet, bool has_audio);

  /// Swaps the next packet into `out`; false when there is none, or it still
  /// has to wait for the other stream. `flush`: nothing waits any more.
  bool next(MediaPacket& out, bool flush);

  std::size_t size() const { return streams_[0].count + streams_[1].count; }
  /// Forgets all packets and returns how many there were.
  std::size_t clear();

 private:
  // How far one stream runs ahead before the other is taken to be missing.
  // Encoders look several seconds ahead; a camera that announces audio and
  // sends none must not delay its video for long.
  static constexpr std::int64_t kAudioAheadUs = 10'000'000;
  static constexpr std::int64_t kVideoAheadUs = 1'000'000;
  static constexpr std::size_t kMaxWaiting = 2048;  // whatever their timestamps say

  struct Lane {  // a ring that grows
    std::vector<MediaPacket> slots;
    std::size_t first = 0;
    std::size_t count = 0;
    const MediaPacket& at(std::size_t i) const { return slots[(first + i) % slots.size()]; }
    MediaPacket& take();
  };
  static std::int64_t span_us(const Lane& lane);

  std::array<Lane, 2> streams_;
  bool has_audio_ = false;
};

/// Decoding time (presentation time where there is none) in microseconds.
std::int64_t packet_time_us(const MediaPacket& packet);

}  // namespace framelane
