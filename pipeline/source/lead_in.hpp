#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <vector>

#include "pipeline/av/av_ptr.hpp"
#include "pipeline/source/demuxer.hpp"

namespace framelane {

/// Gives the first packets of a camera with B-frames their times. By RTSP the first packet comes
/// without a timestamp, and those behind it without a dts, until FFmpeg has seen how the pictures
/// are reordered. The first dts then tells all earlier ones, because they are a frame apart, and
/// the pts of the first packet, which is shown first. One thread.
class LeadIn {
 public:
  /// As Demuxer::read. Holds packets back only if the first one has no timestamp and its stream
  /// reorders, and then up to the first dts.
  Demuxer::Flow read(Demuxer& demuxer, AVPacket& packet);
  /// The next packet is the first of a segment again.
  void restart();
  /// The first packet's pts, where it was worked out.
  std::optional<std::chrono::microseconds> start() const { return start_; }

 private:
  static constexpr std::size_t kMost = 64;  // packets, of sound too

  void collect(Demuxer& demuxer);
  void complete(const Demuxer& demuxer, std::int64_t last_dts);

  bool begun_ = false;
  std::vector<PacketPtr> held_;       // kept for the next segment, so that no loop allocates
  std::size_t count_ = 0;             // of held_, that hold a packet of this segment
  std::size_t next_ = 0;              // of those, to be handed out
  std::optional<Demuxer::Flow> end_;  // what came instead of another packet to hold
  std::optional<std::chrono::microseconds> start_;
};

}  // namespace framelane
