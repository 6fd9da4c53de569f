#include "pipeline/source/lead_in.hpp"

extern "C" {
#include <libavutil/mathematics.h>
}

#include <cstdint>
#include <utility>

namespace framelane {

Demuxer::Flow LeadIn::read(Demuxer& demuxer, AVPacket& packet) {
  if (!std::exchange(begun_, true)) collect(demuxer);
  if (next_ == count_) return end_ ? *end_ : demuxer.read(packet);
  av_packet_move_ref(&packet, held_[next_++].get());
  return Demuxer::Flow::kPacket;
}

void LeadIn::restart() {
  for (const PacketPtr& packet : held_) av_packet_unref(packet.get());
  begun_ = false;
  count_ = next_ = 0;
  end_.reset();
  start_.reset();
}

void LeadIn::collect(Demuxer& demuxer) {
  if (demuxer.video().codecpar->video_delay <= 0) return;
  bool untimed = false;
  while (count_ < kMost) {
    if (count_ == held_.size()) held_.push_back(make_packet());
    AVPacket& last = *held_[count_];
    const Demuxer::Flow flow = demuxer.read(last);
    if (flow != Demuxer::Flow::kPacket) {
      end_ = flow;
      return;
    }
    ++count_;
    if (demuxer.kind_of(last) != StreamKind::kVideo) continue;
    if (!untimed && (last.pts != AV_NOPTS_VALUE || last.dts != AV_NOPTS_VALUE)) return;
    untimed = true;
    if (last.dts != AV_NOPTS_VALUE) return complete(demuxer, last.dts);
  }
}

/// Counts back from the last packet, which has a dts.
void LeadIn::complete(const Demuxer& demuxer, std::int64_t last_dts) {
  const Timeline::StreamClock clock = demuxer.clock_of(StreamKind::kVideo);
  if (clock.frame_rate.num <= 0) return;
  const std::int64_t step = av_rescale_q(1, av_inv_q(clock.frame_rate), clock.time_base);
  std::int64_t dts = last_dts + step;
  AVPacket* first = nullptr;
  for (std::size_t i = count_; i-- > 0;) {
    AVPacket& packet = *held_[i];
    if (demuxer.kind_of(packet) != StreamKind::kVideo) continue;
    dts -= step;
    packet.dts = dts;
    first = &packet;
  }
  first->pts = dts + clock.reorder_delay * step;
  start_ = std::chrono::microseconds(av_rescale_q(first->pts, clock.time_base, AV_TIME_BASE_Q));
}

}  // namespace framelane
