#pragma once

#include <cstddef>
#include <stop_token>
#include <vector>

#include "pipeline/av/av_ptr.hpp"
#include "pipeline/measure/feed_stats.hpp"
#include "pipeline/packets/media.hpp"
#include "pipeline/packets/packet_fanout.hpp"

namespace framelane {

/// Audio of one encode that comes before the encode's format is known: audio is copied or
/// transcoded at once, while the first video frame is still to be decoded. It is held until then.
/// Source thread.
class EarlyAudio {
 public:
  /// `outputs`: the encode's; each of them counts the packets that are lost. They outlive this.
  explicit EarlyAudio(std::vector<OutputStats*> outputs);

  /// Holds a reference to the packet. Beyond kMaxPackets it is lost and counted.
  void hold(const AVPacket& packet);
  /// A packet that has nowhere to go is lost and counted.
  void lose() { count_lost(1); }
  /// The format is known: publishes the packets with it. Blocks as PacketFanout::publish does.
  void publish(PacketFanout& fanout, const MediaFormatRef& format, const std::stop_token& stop);
  /// No video comes that they could be beside: the packets are lost and counted.
  void drop();

 private:
  static constexpr std::size_t kMaxPackets = 1024;  // some seconds

  void count_lost(std::size_t packets);

  std::vector<OutputStats*> outputs_;
  std::vector<PacketPtr> packets_;
};

}  // namespace framelane
