#include "pipeline/source/lead_in.hpp"

extern "C" {
#include <libavutil/mathematics.h>
}

#include <algorithm>
#include <utility>

#include "pipeline/base/failure.hpp"
#include "pipeline/base/line_clock.hpp"
#include "pipeline/source/timeline.hpp"

namespace framelane {
namespace {

/// Where none is known.
constexpr AVRational kUsualRate{25, 1};

}  // namespace

Demuxer::Flow LeadIn::read(Demuxer& demuxer, AVPacket& packet, Clock::time_point& arrived) {
  if (!std::exchange(begun_, true)) collect(demuxer);
  if (next_ < count_) {
    Held& held = held_[next_++];
    av_packet_move_ref(&packet, held.packet.get());
    arrived = held.arrived;
    return Demuxer::Flow::kPacket;
  }
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  if (end_) return *end_;
  const Demuxer::Flow flow = demuxer.read(packet);
  arrived = Clock::now();
  return flow;
}

void LeadIn::restart() {
  for (const Held& held : held_) av_packet_unref(held.packet.get());
  begun_ = false;
  count_ = next_ = bytes_ = 0;
  end_.reset();
  failure_ = nullptr;
  start_.reset();
  delay_.reset();
}

void LeadIn::collect(Demuxer& demuxer) {
  // Behind its last segment a playlist makes the reader wait for the next one.
  bool burst = demuxer.clock_of(StreamKind::kVideo).live && !demuxer.playlist();
  bool untimed = burst || demuxer.video().codecpar->video_delay > 0;
  bool first = true;
  while ((untimed && count_ < kMostUntimed) || (burst && count_ < kMost && bytes_ < kMostBytes)) {
    const Held* const held = hold(demuxer);
    if (held == nullptr) return;
    const AVPacket& packet = *held->packet;
    if (demuxer.kind_of(packet) != StreamKind::kVideo) continue;
    const bool has_dts = packet.dts != AV_NOPTS_VALUE;
    if (untimed && first) {
      untimed = !has_dts && packet.pts == AV_NOPTS_VALUE;
    } else if (untimed && has_dts) {
      complete(demuxer, packet.dts);
      untimed = false;
    }
    first = false;
    burst = burst && in_burst(*held, demuxer.time_base(StreamKind::kVideo));
  }
}

LeadIn::Held* LeadIn::hold(Demuxer& demuxer) {
  if (count_ == held_.size()) held_.push_back({make_packet(), {}});
  Held& held = held_[count_];
  try {
    const Demuxer::Flow flow = demuxer.read(*held.packet);
    if (flow != Demuxer::Flow::kPacket) {
      end_ = flow;
      return nullptr;
    }
  } catch (const IoError&) {
    failure_ = std::current_exception();
    return nullptr;
  }
  held.arrived = Clock::now();
  bytes_ += static_cast<std::size_t>(held.packet->size);
  ++count_;
  return &held;
}

bool LeadIn::in_burst(const Held& video, AVRational time_base) {
  observe(video, time_base);
  if (video.arrived - held_.front().arrived >= kLongestBurst) return false;
  return !delay_ || (video.arrived - fallen_at_ < kCalm && latest_us_ - first_us_ < kMostUs);
}

void LeadIn::observe(const Held& video, AVRational time_base) {
  const AVPacket& packet = *video.packet;
  const std::int64_t time = packet.pts != AV_NOPTS_VALUE ? packet.pts : packet.dts;
  if (time == AV_NOPTS_VALUE) return;
  const std::int64_t time_us = av_rescale_q(time, time_base, AV_TIME_BASE_Q);
  if (time_us < -LineClock::kFarthestUs || time_us > LineClock::kFarthestUs) return;
  // A B-frame comes behind a picture that was taken later. A jump does not say when a picture was
  // taken.
  if (delay_ && (time_us <= latest_us_ || time_us - latest_us_ > Timeline::kJumpUs)) return;
  latest_us_ = time_us;
  if (!delay_) first_us_ = time_us;
  const auto arrived =
      std::chrono::duration_cast<std::chrono::microseconds>(video.arrived.time_since_epoch());
  const auto delay = arrived - std::chrono::microseconds(time_us);
  if (!delay_ || delay < *delay_ - kNoise) fallen_at_ = video.arrived;
  delay_ = std::min(delay_.value_or(delay), delay);
}

/// Counts back from the last packet, which has a dts.
void LeadIn::complete(const Demuxer& demuxer, std::int64_t last_dts) {
  const Timeline::StreamClock clock = demuxer.clock_of(StreamKind::kVideo);
  const bool reorders = clock.reorder_delay > 0;
  if (reorders && clock.frame_rate.num <= 0) return;
  const AVRational rate = clock.frame_rate.num > 0 ? clock.frame_rate : kUsualRate;
  const std::int64_t step = av_rescale_q(1, av_inv_q(rate), clock.time_base);
  std::int64_t dts = last_dts + step;
  AVPacket* first = nullptr;
  for (std::size_t i = count_; i-- > 0;) {
    AVPacket& packet = *held_[i].packet;
    if (demuxer.kind_of(packet) != StreamKind::kVideo) continue;
    dts -= step;
    packet.dts = dts;
    if (!reorders && packet.pts == AV_NOPTS_VALUE) packet.pts = dts;
    first = &packet;
  }
  first->pts = dts + clock.reorder_delay * step;
  start_ = std::chrono::microseconds(av_rescale_q(first->pts, clock.time_base, AV_TIME_BASE_Q));
}

}  // namespace framelane
