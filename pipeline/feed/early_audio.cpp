#include "pipeline/feed/early_audio.hpp"

extern "C" {
#include <libavcodec/packet.h>
}

#include <new>

namespace framelane {

void EarlyAudio::hold(const AVPacket& packet) {
  if (packets_.size() == kMaxPackets) return count_lost(1);
  PacketPtr held = make_packet();
  if (av_packet_ref(held.get(), &packet) < 0) throw std::bad_alloc();
  packets_.push_back(std::move(held));
}

void EarlyAudio::publish(const MediaFormatRef& format, const std::stop_token& stop) {
  for (const PacketPtr& packet : packets_) {
    fanout_->publish(*packet, StreamKind::kAudio, format, stop);
  }
  packets_.clear();
}

void EarlyAudio::drop() {
  count_lost(packets_.size());
  packets_.clear();
}

void EarlyAudio::count_lost(std::size_t packets) {
  if (packets > 0) fanout_->lose(StreamKind::kAudio, PacketDrop::kWaitKeyframe, packets);
}

}  // namespace framelane
