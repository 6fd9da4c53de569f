#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "pipeline/packets/packet_queue.hpp"

namespace framelane {

/// Puts an output's audio and video into the order of their decoding times. Audio is copied past
/// the encoder and comes earlier than its video, so that without this a segment would get audio of
/// the next one. Video without audio is not delayed. Once kMaxWaiting packets, or
/// PacketQueue::kMostBytes, wait, packets are given out at once. One thread.
class Interleaver {
 public:
  /// Takes the packet; `packet` gets a spare one in exchange. `has_audio`: audio comes beside the
  /// video.
  void add(MediaPacket& packet, bool has_audio);

  /// Swaps the next packet into `out`. False if there is none, or if it still has to wait for the
  /// other stream. `flush`: no packet waits.
  bool next(MediaPacket& out, bool flush);

  std::size_t size() const { return streams_[0].count + streams_[1].count; }
  /// Removes all packets; returns how many there were (of this stream).
  std::size_t clear(std::optional<StreamKind> of = std::nullopt);

 private:
  // How far one stream runs ahead until it no longer waits for the other. Audio waits long, because
  // encoders look several seconds ahead. Video waits briefly, because a camera may announce audio
  // and send none: until it is a second ahead, and a second of it has come. After the process did
  // not run for a while, the video of many seconds comes at once, before all of their audio.
  static constexpr std::int64_t kAudioAheadUs = 10'000'000;
  static constexpr std::int64_t kVideoAheadUs = 1'000'000;
  static constexpr std::int64_t kVideoAheadInBurstUs = 10'000'000;
  static constexpr std::chrono::seconds kVideoComes{1};
  static constexpr std::size_t kMaxWaiting = 2048;  // packets, whatever their timestamps are

  struct Lane {  // a ring that grows
    std::vector<MediaPacket> slots;
    std::size_t first = 0;
    std::size_t count = 0;
    const MediaPacket& at(std::size_t i) const { return slots[(first + i) % slots.size()]; }
    MediaPacket& take();
  };
  static std::int64_t span_us(const Lane& lane);
  static bool waits_for_audio(const Lane& video);

  std::array<Lane, 2> streams_;
  std::size_t bytes_ = 0;  // of all packets in them
  bool has_audio_ = false;
};

/// Decoding time (presentation time where there is none) in microseconds.
std::int64_t packet_time_us(const AVPacket& packet, StreamKind stream, const MediaFormat& format);
std::int64_t packet_time_us(const MediaPacket& packet);
/// The exact time of the picture where the packet has its name (frame_of); else as above.
std::int64_t frame_time_us(const AVPacket& video, const MediaFormat& format);

}  // namespace framelane
