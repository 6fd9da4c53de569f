#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <vector>

#include "pipeline/av/av_ptr.hpp"
#include "pipeline/source/demuxer.hpp"

namespace framelane {

/// Reads a source's first packets ahead, where the first one alone does not tell what has to be
/// known of it. There are two such cases.
///
/// A live source begins with a burst: what was read to find out its format, and what the camera had
/// kept since its last keyframe. Only the last packets of the burst are not late, and tell when the
/// pictures were taken.
///
/// By RTSP the first packet comes without a timestamp, and of a camera with B-frames those behind
/// it without a dts, until FFmpeg has seen how the pictures are reordered. The first dts then tells
/// all earlier ones, because they are a frame apart, and the pts of the first packet, which is
/// shown first.
///
/// One thread.
class LeadIn {
 public:
  using Clock = std::chrono::steady_clock;

  /// As Demuxer::read. `arrived`: when the packet was read from the source. If the source is lost
  /// meanwhile, what was read ahead comes first.
  Demuxer::Flow read(Demuxer& demuxer, AVPacket& packet, Clock::time_point& arrived);
  /// The next packet is the first of a segment again.
  void restart();
  /// The first packet's pts, where it was worked out.
  std::optional<std::chrono::microseconds> start() const { return start_; }
  /// Of a live source: the least of (arrival − timestamp) of the packets that were read ahead.
  std::optional<std::chrono::microseconds> delay() const { return delay_; }

 private:
  static constexpr std::size_t kMost = 1024;               // packets, of sound too
  static constexpr std::size_t kMostBytes = 64u << 20;     // as a fan-out caches of a group
  static constexpr std::size_t kMostUntimed = 64;          // packets
  static constexpr std::chrono::seconds kLongestBurst{2};  // from its first packet
  /// No camera keeps more pictures than of this time.
  static constexpr std::int64_t kMostUs = 10'000'000;
  static constexpr std::chrono::milliseconds kCalm{100};    // without a packet that is less late
  static constexpr std::chrono::microseconds kNoise{2000};  // of what counts as less

  struct Held {
    PacketPtr packet;
    Clock::time_point arrived;
  };

  void collect(Demuxer& demuxer);
  /// Null: no other packet came.
  Held* hold(Demuxer& demuxer);
  void complete(const Demuxer& demuxer, std::int64_t last_dts);
  /// True if the packet is part of the burst, so that the next one may be less late.
  bool in_burst(const Held& video, AVRational time_base);
  /// What a picture says of the delay.
  void observe(const Held& video, AVRational time_base);

  bool begun_ = false;
  std::vector<Held> held_;  // kept for the next segment, so that no loop allocates
  std::size_t count_ = 0;   // of held_, that hold a packet of this segment
  std::size_t next_ = 0;    // of those, to be handed out
  std::size_t bytes_ = 0;
  std::optional<Demuxer::Flow> end_;  // what came instead of another packet to hold
  std::exception_ptr failure_;        // the same
  std::optional<std::chrono::microseconds> start_;
  std::optional<std::chrono::microseconds> delay_;
  // Once delay_ is known.
  std::int64_t first_us_ = 0;    // the first timestamp
  std::int64_t latest_us_ = 0;   // the highest that is no jump
  Clock::time_point fallen_at_;  // the arrival of the last packet less late than all before
};

}  // namespace framelane
