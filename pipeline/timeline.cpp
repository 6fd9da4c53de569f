#include "pipeline/timeline.hpp"

extern "C" {
#include <libavutil/common.h>
#include <libavutil/mathematics.h>
}

#include <algorithm>

namespace framelane {
namespace {

constexpr AVRational kMicroseconds{1, 1'000'000};
constexpr std::int64_t kJumpUs = 5'000'000;
constexpr int kAcceptAfter = 3;
/// As far as reordering goes.
constexpr std::int64_t kMaxFrameShiftUs = 1'000'000;
/// A longer duration is damaged.
constexpr std::int64_t kMaxStepUs = 3'600'000'000;
/// A step when neither duration nor rate nor an earlier packet tells one.
constexpr std::int64_t kDefaultStepUs = 40'000;

std::int64_t to_us(std::int64_t ticks, AVRational time_base) {
  return av_rescale_q(ticks, time_base, kMicroseconds);
}

std::int64_t to_ticks(std::int64_t us, AVRational time_base) {
  return av_rescale_q(us, kMicroseconds, time_base);
}

/// Timestamps come from the network: sums and differences of them must not overflow.
std::int64_t add(std::int64_t a, std::int64_t b) { return av_sat_add64(a, b); }
std::int64_t subtract(std::int64_t a, std::int64_t b) { return av_sat_sub64(a, b); }

bool within_jump(std::int64_t us) { return us >= -kJumpUs && us <= kJumpUs; }

bool near(std::int64_t a, std::int64_t b, AVRational time_base) {
  return within_jump(to_us(subtract(a, b), time_base));
}

}  // namespace

void Timeline::begin_segment(std::optional<std::chrono::microseconds> start) {
  start_us_ = start ? std::optional(start->count()) : std::nullopt;
  segment_open_ = false;
  frame_joining_ = true;
  untimed_start_ = false;
  frame_shift_ = 0;
  for (Stream& s : streams_) {
    s.wrap = 0;
    s.begun = false;
    s.joining = true;
    s.off_line = 0;
  }
}

void Timeline::set_stream(StreamKind kind, const StreamClock& clock) {
  Stream& s = stream(kind);
  const auto rescale = [&](std::int64_t ticks) {
    return av_rescale_q(ticks, s.clock.time_base, clock.time_base);
  };
  if (s.last) s.last = rescale(*s.last);
  if (kind == StreamKind::kVideo && last_frame_) last_frame_ = rescale(*last_frame_);
  s.step = rescale(s.step);
  s.clock = clock;
}

std::int64_t Timeline::step_of(const Stream& s, std::int64_t duration) const {
  if (duration > 0 && duration <= to_ticks(kMaxStepUs, s.clock.time_base)) return duration;
  const AVRational rate = s.clock.frame_rate;
  if (rate.num > 0 && rate.den > 0) {
    return std::max<std::int64_t>(1, av_rescale_q(1, av_inv_q(rate), s.clock.time_base));
  }
  if (s.step > 0) return s.step;
  return std::max<std::int64_t>(1, to_ticks(kDefaultStepUs, s.clock.time_base));
}

// Where the line expects the stream's next packet: behind its last one, or, for its first in a
// segment, where the other stream is, or else where the line ends.
std::int64_t Timeline::expected(const Stream& s) const {
  if (s.begun) return add(*s.last, s.step);
  const Stream& o = other(s);
  if (o.begun) return av_rescale_q(*o.last, o.clock.time_base, s.clock.time_base);
  const std::int64_t end = to_ticks(line_end_us_, s.clock.time_base);
  return s.last ? std::max(end, *s.last + 1) : end;
}

void Timeline::open_segment(const Stream& s, std::int64_t first) {
  const std::int64_t first_us = to_us(first, s.clock.time_base);
  // A start that is far from what comes is a container's mistake.
  const bool credible = start_us_ && within_jump(subtract(first_us, *start_us_));
  offset_us_ = subtract(line_end_us_, credible ? *start_us_ : first_us);
  for (Stream& each : streams_) {
    each.offset_us = offset_us_;
    each.offset = to_ticks(offset_us_, each.clock.time_base);
  }
  segment_open_ = true;
}

// Where `key`, a timestamp of the source, lies on our line.
std::int64_t Timeline::place(Stream& s, std::int64_t key, std::int64_t step) {
  const AVRational time_base = s.clock.time_base;
  const std::int64_t unwrapped = add(key, s.wrap);
  const std::int64_t out = add(unwrapped, s.offset);
  const bool first_of_all = !s.begun && !other(s).begun;
  const std::int64_t next = expected(s);
  if (first_of_all || near(out, next, time_base)) {
    s.off_line = 0;
    return out;
  }
  if (s.clock.wrap_bits < 63) {
    const std::int64_t period = std::int64_t{1} << s.clock.wrap_bits;
    for (const std::int64_t turn : {period, -period}) {
      if (!near(add(out, turn), next, time_base)) continue;
      s.wrap += turn;
      s.off_line = 0;
      stats_.count(TimestampRepair::kWrap);
      return add(out, turn);
    }
  }
  // The other stream has already moved to a new line that this packet belongs to.
  const std::int64_t shared = to_ticks(offset_us_, time_base);
  if (s.offset_us != offset_us_ && near(add(unwrapped, shared), next, time_base)) {
    s.offset = shared;
    s.offset_us = offset_us_;
    s.off_line = 0;
    s.joining = true;
    return add(unwrapped, shared);
  }
  return jump(s, unwrapped, step);
}

std::int64_t Timeline::jump(Stream& s, std::int64_t key, std::int64_t step) {
  const AVRational time_base = s.clock.time_base;
  const std::int64_t key_us = to_us(key, time_base);
  const auto agrees = [key_us](const Stream& with) {
    return with.off_line > 0 && within_jump(subtract(key_us, with.candidate_us));
  };
  if (!agrees(s)) {
    s.off_line = 0;
    if (!agrees(other(s))) stats_.count(TimestampRepair::kJump);
  }
  ++s.off_line;
  s.candidate_us = to_us(add(key, step), time_base);
  s.joining = true;
  const std::int64_t out = expected(s);
  if (s.off_line >= kAcceptAfter) {
    s.off_line = 0;
    s.offset = subtract(out, key);
    s.offset_us = offset_us_ = to_us(s.offset, time_base);
  }
  return out;
}

void Timeline::stamp(StreamKind kind, AVPacket& packet) {
  Stream& s = stream(kind);
  const AVRational time_base = s.clock.time_base;
  const std::int64_t step = step_of(s, packet.duration);
  const bool reorders = s.clock.reorder_delay > 0;
  const std::int64_t reordering = s.clock.reorder_delay * step;
  const bool has_dts = packet.dts != AV_NOPTS_VALUE;
  const bool has_pts = packet.pts != AV_NOPTS_VALUE;

  std::int64_t ahead = has_dts && has_pts ? subtract(packet.pts, packet.dts) : 0;
  if (s.clock.wrap_bits < 63) {
    // The counter may wrap between a packet's dts and its pts.
    const std::int64_t period = std::int64_t{1} << s.clock.wrap_bits;
    if (ahead > period / 2) ahead -= period;
    if (ahead < -period / 2) ahead += period;
  }
  const bool damaged = !near(ahead, 0, time_base);  // no codec reorders over seconds
  if (damaged) ahead = 0;
  if (damaged || (!has_pts && !(has_dts && reorders))) stats_.count(TimestampRepair::kMissing);

  std::int64_t dts = expected(s);
  std::int64_t pts = reorders ? AV_NOPTS_VALUE : dts;
  if (!has_dts && !has_pts && reorders && !s.begun) {
    untimed_start_ = kind == StreamKind::kVideo;
    pts = dts;  // what comes first is shown first
    dts = subtract(pts, reordering);
  }
  if (has_dts || has_pts) {
    const std::int64_t key = has_dts ? packet.dts : packet.pts;
    if (!segment_open_) open_segment(s, add(key, ahead));
    const std::int64_t placed = place(s, key, step);
    if (has_pts || !reorders) pts = add(placed, ahead);
    if (has_dts || !reorders) {
      dts = placed;
    } else {
      dts = s.begun ? std::min(dts, placed) : subtract(placed, reordering);
    }
  }
  if (s.last && dts <= *s.last) {
    dts = *s.last + 1;
    if (pts != AV_NOPTS_VALUE) pts = std::max(pts, dts);
    if (!s.joining && has_dts) stats_.count(TimestampRepair::kBackward);
  } else {
    s.joining = false;
  }

  packet.dts = dts;
  packet.pts = pts;
  s.last = dts;
  s.step = step;
  s.begun = true;
  const std::int64_t end = add(pts == AV_NOPTS_VALUE ? dts : std::max(pts, dts), step);
  line_end_us_ = std::max(line_end_us_, to_us(end, time_base));
}

std::int64_t Timeline::stamp_frame(std::int64_t pts, std::int64_t duration) {
  const Stream& video = stream(StreamKind::kVideo);
  if (pts == AV_NOPTS_VALUE) {
    stats_.count(TimestampRepair::kMissing);
    pts = last_frame_ ? *last_frame_ + step_of(video, duration) : expected(video);
  } else {
    pts = add(pts, frame_shift_);
  }
  if (untimed_start_ && last_frame_ && pts <= *last_frame_) {
    // Pictures that came first without a timestamp took the place of those shown after them (a
    // camera's first, before its B-frames): the rest of the segment moves behind them.
    const std::int64_t behind = add(*last_frame_, step_of(video, duration));
    const std::int64_t missing = subtract(behind, pts);
    if (missing <= to_ticks(kMaxFrameShiftUs, video.clock.time_base)) {
      untimed_start_ = false;
      frame_shift_ = missing;
      pts = behind;
    }
  }
  if (last_frame_ && pts <= *last_frame_) {
    if (!frame_joining_) stats_.count(TimestampRepair::kBackward);
    pts = *last_frame_ + 1;
  } else {
    frame_joining_ = false;
  }
  last_frame_ = pts;
  return pts;
}

}  // namespace framelane
