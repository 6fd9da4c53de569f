#pragma once

#include <cstddef>
#include <stop_token>
#include <vector>

#include "pipeline/av/av_ptr.hpp"
#include "pipeline/packets/media.hpp"
#include "pipeline/packets/packet_fanout.hpp"

namespace framelane {

/// Audio of one encode that comes before the encode's format is known: audio is copied or
/// transcoded at once, while the first video frame is still to be decoded. It is held until then.
/// Source thread.
class EarlyAudio {
 public:
  /// `fanout`: the encode's. Its outputs count the packets that are lost. It outlives this.
  explicit EarlyAudio(PacketFanout& fanout) : fanout_(&fanout) {}

  /// Holds a reference to the packet. Beyond kMaxPackets it is lost and counted.
  void hold(const AVPacket& packet);
  /// A packet that has nowhere to go is lost and counted.
  void lose() { count_lost(1); }
  /// The format is known: publishes the packets with it. Blocks as PacketFanout::publish does.
  void publish(const MediaFormatRef& format, const std::stop_token& stop);
  /// No video comes that they could be beside: the packets are lost and counted.
  void drop();

 private:
  static constexpr std::size_t kMaxPackets = 1024;  // some seconds

  void count_lost(std::size_t packets);

  PacketFanout* fanout_;
  std::vector<PacketPtr> packets_;
};

}  // namespace framelane
