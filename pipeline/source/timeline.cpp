// Longer than 400 lines: each rule of the line of time needs the state that all others keep.
#include "pipeline/source/timeline.hpp"

extern "C" {
#include <libavutil/common.h>
#include <libavutil/mathematics.h>
}

#include <algorithm>

namespace framelane {
namespace {

constexpr AVRational kMicroseconds{1, 1'000'000};
/// This many consecutive packets that agree start a new line.
constexpr int kAcceptAfter = 3;
/// If a segment begins farther than this before the last one's end, it repeats that. If it is
/// nearer, it may be new: when pictures were taken is not known exactly.
constexpr std::int64_t kRepeatUs = 50'000;
/// No camera, and no playlist, repeats more.
constexpr std::int64_t kMostRepeatedUs = 30'000'000;
/// Frames are moved behind untimed ones by at most this: no codec reorders further.
constexpr std::int64_t kMaxFrameShiftUs = 1'000'000;
/// A longer duration, or a frame rate that gives a longer one, is not believed.
constexpr std::int64_t kMaxStepUs = 3'600'000'000;
/// The longest gap that is believed where the clock may have been another one's.
constexpr std::int64_t kPlausibleGapUs = 600'000'000;
/// A time farther from zero than this, in ticks or in microseconds, is not believed. It is half of
/// what fits, so that the sum of such a time and an offset does not overflow.
constexpr std::int64_t kFarthest = INT64_MAX / 2;
/// Sources that send in pieces send a piece at least this often, but for a few: the segments of HLS
/// are 2 to 10 s long.
constexpr std::int64_t kLongestPieceUs = 10'000'000;
/// The step when neither duration nor rate nor an earlier packet gives one.
constexpr std::int64_t kDefaultStepUs = 40'000;

// Timestamps come from the network: sums, differences and products of them must not overflow.
std::int64_t add(std::int64_t a, std::int64_t b) { return av_sat_add64(a, b); }
std::int64_t subtract(std::int64_t a, std::int64_t b) { return av_sat_sub64(a, b); }

std::int64_t rescale(std::int64_t value, AVRational from, AVRational to) {
  const std::int64_t result = av_rescale_q(value, from, to);
  if (result != INT64_MIN) return result;
  return value < 0 ? -INT64_MAX : INT64_MAX;  // FFmpeg's one answer to every overflow
}

std::int64_t to_us(std::int64_t ticks, AVRational time_base) {
  return rescale(ticks, time_base, kMicroseconds);
}

std::int64_t to_ticks(std::int64_t us, AVRational time_base) {
  return rescale(us, kMicroseconds, time_base);
}

bool is_time(std::int64_t ticks, AVRational time_base) {
  const auto near_enough = [](std::int64_t value) {
    return value >= -kFarthest && value <= kFarthest;
  };
  return near_enough(ticks) && near_enough(to_us(ticks, time_base));
}

bool within_jump(std::int64_t us) { return us >= -Timeline::kJumpUs && us <= Timeline::kJumpUs; }

std::int64_t microseconds_of(Timeline::Clock::time_point moment) {
  using Microseconds = std::chrono::duration<std::int64_t, std::micro>;
  return std::chrono::duration_cast<Microseconds>(moment.time_since_epoch()).count();
}

bool near(std::int64_t a, std::int64_t b, AVRational time_base) {
  return within_jump(to_us(subtract(a, b), time_base));
}

}  // namespace

void Timeline::begin_segment(std::optional<std::chrono::microseconds> start,
                             std::optional<std::chrono::microseconds> delay) {
  start_us_ = start ? std::optional(start->count()) : std::nullopt;
  delay_us_ = delay ? std::optional(delay->count()) : std::nullopt;
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
  const auto adopt = [&](std::int64_t ticks) {
    return rescale(ticks, s.clock.time_base, clock.time_base);
  };
  if (s.last) s.last = adopt(*s.last);
  if (s.delivered.last) s.delivered.last = adopt(*s.delivered.last);
  s.top = adopt(s.top);
  if (kind == StreamKind::kVideo && last_frame_) last_frame_ = adopt(*last_frame_);
  if (kind == StreamKind::kVideo && delivered_frame_.last) {
    delivered_frame_.last = adopt(*delivered_frame_.last);
  }
  s.step = adopt(s.step);
  s.clock = clock;
}

std::int64_t Timeline::step_of(const Stream& s, std::int64_t duration) const {
  const std::int64_t longest = std::max<std::int64_t>(1, to_ticks(kMaxStepUs, s.clock.time_base));
  if (duration > 0 && duration <= longest) return duration;
  const AVRational rate = s.clock.frame_rate;
  if (rate.num > 0 && rate.den > 0) {
    const std::int64_t step = rescale(1, av_inv_q(rate), s.clock.time_base);
    return std::clamp<std::int64_t>(step, 1, longest);
  }
  if (s.step > 0) return s.step;
  return std::max<std::int64_t>(1, to_ticks(kDefaultStepUs, s.clock.time_base));
}

/// Where the line expects the stream's next packet: behind its last one, or, if the packet was a
/// long time in coming, that much later. For the first packet in a segment: where the other stream
/// is, or, if that has not begun either, where the line ends.
std::int64_t Timeline::expected(const Stream& s) const {
  if (s.begun) {
    const bool still = s.waited_us > kJumpUs;
    const std::int64_t waited = still ? to_ticks(s.waited_us, s.clock.time_base) : 0;
    return add(*s.last, std::max(s.step, waited));
  }
  const Stream& o = other(s);
  if (o.begun) return rescale(*o.last, o.clock.time_base, s.clock.time_base);
  const std::int64_t end = to_ticks(end_us(), s.clock.time_base);
  return s.last ? std::max(end, add(*s.last, 1)) : end;
}

/// Where the line ends: the end of its last packet of any stream.
std::int64_t Timeline::end_us() const {
  std::int64_t end = 0;
  for (const Stream& s : streams_) {
    if (s.last) end = std::max(end, to_us(add(s.top, s.step), s.clock.time_base));
  }
  return end;
}

/// The highest timestamp that was given out.
std::int64_t Timeline::top_us() const {
  std::int64_t top = 0;
  for (const Stream& s : streams_) {
    if (s.last) top = std::max(top, to_us(s.top, s.clock.time_base));
  }
  return top;
}

/// How far the stream's next packet may lie from the last one, before others agree with it.
std::int64_t Timeline::longest_gap_us(const Stream& s) const {
  switch (s.clock.gaps) {
    case Gaps::kAll:
      return kMaxStepUs;
    case Gaps::kPlausible:
      // Between pictures of which each comes long after the last one. Otherwise a single packet
      // that is far from the last one may be a damaged one.
      return s.sparse && !other(s).begun ? kPlausibleGapUs : kJumpUs;
    case Gaps::kNone:
      break;
  }
  return kJumpUs;
}

/// True when a packet of the stream may lie at `time`: near where it is expected, anywhere between
/// the last one and there (the last duration may be wrong), not much later than the last one than
/// it arrived, or, if both streams are on one line (`shared`), near the other stream.
bool Timeline::on_line(const Stream& s, std::int64_t time, bool shared) const {
  const AVRational time_base = s.clock.time_base;
  if (near(time, expected(s), time_base)) return true;
  if (s.begun && time > *s.last) {
    const std::int64_t longest = std::max(add(s.waited_us, kJumpUs), longest_gap_us(s));
    if (time < expected(s) || to_us(subtract(time, *s.last), time_base) <= longest) return true;
  }
  const Stream& o = other(s);
  return shared && o.begun &&
         within_jump(subtract(to_us(time, time_base), to_us(*o.last, o.clock.time_base)));
}

void Timeline::open_segment(const Stream& s, std::int64_t first, Clock::time_point arrived) {
  const std::int64_t first_us = to_us(first, s.clock.time_base);
  // If the start is far from the first packet, the container is wrong.
  const bool credible = start_us_ && within_jump(subtract(first_us, *start_us_));
  const std::int64_t begin_us = credible ? *start_us_ : first_us;
  offset_us_ = subtract(end_us(), begin_us);
  if (s.clock.ours) {
    place_by_clock(s, begin_us, 0);
  } else if (s.clock.live) {
    place_by_clock(s, begin_us, delay_us_.value_or(subtract(microseconds_of(arrived), first_us)));
  } else {
    capture_.forget();
  }
  for (Stream& each : streams_) {
    each.offset_us = offset_us_;
    each.offset = to_ticks(offset_us_, each.clock.time_base);
  }
  segment_open_ = true;
}

/// The new segment begins not at the line's end, but where its pictures were taken. `delay_us`:
/// from a timestamp of the source to when its picture was taken, by Clock.
void Timeline::place_by_clock(const Stream& s, std::int64_t begin_us, std::int64_t delay_us) {
  // Where a segment lies is never quite exact: what came before is no measure for it.
  capture_.restart();
  if (capture_.known()) {
    for (Stream& each : streams_) {
      if (!each.last) continue;
      each.delivered = {std::max(each.delivered.last.value_or(*each.last), *each.last)};
    }
    delivered_frame_ = {last_frame_};
    const std::int64_t offset_us = subtract(delay_us, capture_.zero_us());
    const std::int64_t repeated_us = subtract(top_us(), add(begin_us, offset_us));
    if (!s.clock.ours && repeated_us > kMostRepeatedUs) return;  // not to be believed
    offset_us_ = offset_us;
  }
  // None of the packets that are known came sooner after its picture was taken.
  capture_.observe(add(begin_us, offset_us_), add(begin_us, delay_us));
}

bool Timeline::Delivered::repeats(std::int64_t time, std::int64_t step, AVRational time_base) {
  if (!last) return false;
  const std::int64_t first_new =
      comes_again ? add(*last, step / 2) : subtract(*last, to_ticks(kRepeatUs, time_base));
  comes_again = time < first_new;
  if (!comes_again) last.reset();
  return comes_again;
}

void Timeline::observe_arrival(const Stream& s, std::int64_t pts, Clock::time_point arrived) {
  if (s.clock.live && pts != AV_NOPTS_VALUE && s.off_line == 0) {
    capture_.observe(to_us(pts, s.clock.time_base), microseconds_of(arrived));
  }
  // A source that sends in pieces, or seldom, is not gone between them. A long silence is usual
  // when it comes a second time: the first one may have been an outage.
  if (s.begun) {
    const auto follow = [&](std::int64_t& longest_us, std::int64_t silence_us) {
      longest_us = std::max(silence_us, longest_us - s.waited_us / 2);
    };
    follow(pause_us_, std::min(s.waited_us, silence_us_));
    follow(piece_us_, std::min(s.waited_us, kLongestPieceUs));
    follow(silence_us_, s.waited_us);
  }
  line_clock_.arrived(arrived, std::chrono::microseconds(std::max(pause_us_, piece_us_)),
                      std::chrono::microseconds(pause_us_));
}

/// Where `key`, a timestamp of the source, lies on our line.
std::int64_t Timeline::place(Stream& s, std::int64_t key, std::int64_t step) {
  const AVRational time_base = s.clock.time_base;
  const std::int64_t unwrapped = add(key, s.wrap);
  const std::int64_t out = add(unwrapped, s.offset);
  const bool first_of_all = !s.begun && !other(s).begun;
  const bool shared = s.offset_us == offset_us_;
  if (first_of_all || s.clock.ours || on_line(s, out, shared)) {
    s.off_line = 0;
    return out;
  }
  if (s.clock.wrap_bits < 63) {
    const std::int64_t period = std::int64_t{1} << s.clock.wrap_bits;
    for (const std::int64_t turn : {period, -period}) {
      if (!on_line(s, add(out, turn), shared)) continue;
      s.wrap = add(s.wrap, turn);
      s.off_line = 0;
      stats_.count(TimestampRepair::kWrap);
      return add(out, turn);
    }
  }
  // The other stream may have moved to a new line already, to which this packet belongs too.
  const std::int64_t joined = add(unwrapped, to_ticks(offset_us_, time_base));
  if (!shared && on_line(s, joined, true)) {
    s.offset = to_ticks(offset_us_, time_base);
    s.offset_us = offset_us_;
    s.off_line = 0;
    s.joining = true;
    return joined;
  }
  return jump(s, unwrapped, step);
}

/// Where a packet that is off the line is put; the third that agrees makes the new line.
std::int64_t Timeline::jump(Stream& s, std::int64_t key, std::int64_t step) {
  const AVRational time_base = s.clock.time_base;
  const std::int64_t key_us = to_us(key, time_base);
  const auto agrees = [key_us](const Stream& with, std::int64_t longest) {
    const std::int64_t later = subtract(key_us, with.candidate_us);
    return with.off_line > 0 && later >= -kJumpUs && later <= longest;
  };
  const Stream& o = other(s);
  const bool plausible = s.clock.gaps == Gaps::kPlausible;
  if (!agrees(s, plausible ? kPlausibleGapUs : add(kJumpUs, s.waited_us))) {
    s.off_line = 0;
    s.other_before = o.last;
    if (!agrees(o, add(kJumpUs, o.waited_us))) stats_.count(TimestampRepair::kJump);
  }
  ++s.off_line;
  s.candidate_us = to_us(add(key, step), time_base);
  s.joining = true;
  const std::int64_t out = expected(s);
  if (s.off_line >= kAcceptAfter) {
    s.off_line = 0;
    const std::int64_t as_sent = add(key, s.offset);
    const bool other_goes_on = o.off_line == 0 && o.last != s.other_before;
    const bool gap = plausible && !other_goes_on && as_sent > *s.last &&
                     to_us(subtract(as_sent, *s.last), time_base) <= kPlausibleGapUs;
    if (gap) return as_sent;
    s.offset = subtract(out, key);
    s.offset_us = offset_us_ = to_us(s.offset, time_base);
    capture_.restart();
  }
  return out;
}

bool Timeline::stamp(StreamKind kind, AVPacket& packet, Clock::time_point arrived) {
  Stream& s = stream(kind);
  s.waited_us = std::chrono::duration_cast<std::chrono::microseconds>(arrived - s.arrived).count();
  s.arrived = arrived;
  const AVRational time_base = s.clock.time_base;
  const bool has_dts = is_time(packet.dts, time_base);
  const bool has_pts = is_time(packet.pts, time_base);
  if (packet.duration < 0 || to_us(packet.duration, time_base) > kMaxStepUs) packet.duration = 0;
  const std::int64_t step = step_of(s, packet.duration);
  const bool reorders = s.clock.reorder_delay > 0;
  const std::int64_t reordering = s.clock.reorder_delay * step;

  std::int64_t ahead = has_dts && has_pts ? subtract(packet.pts, packet.dts) : 0;
  if (s.clock.wrap_bits < 63) {
    // The counter may have wrapped between the packet's dts and its pts.
    const std::int64_t period = std::int64_t{1} << s.clock.wrap_bits;
    if (ahead > period / 2) ahead -= period;
    if (ahead < -period / 2) ahead += period;
  }
  // No codec reorders over seconds, unless the pictures are that far apart.
  const std::int64_t ahead_us = to_us(ahead, time_base);
  const std::int64_t farthest = s.clock.gaps == Gaps::kAll ? kMaxStepUs : kJumpUs;
  const bool damaged = ahead_us > farthest || ahead_us < -farthest;
  if (damaged) ahead = 0;
  const bool absurd =
      (packet.dts != AV_NOPTS_VALUE && !has_dts) || (packet.pts != AV_NOPTS_VALUE && !has_pts);
  if (damaged || absurd || (!has_pts && !(has_dts && reorders)))
    stats_.count(TimestampRepair::kMissing);

  std::int64_t dts = expected(s);
  std::int64_t pts = reorders ? AV_NOPTS_VALUE : dts;
  if (!has_dts && !has_pts && reorders && !s.begun) {
    untimed_start_ = kind == StreamKind::kVideo;
    pts = dts;  // the first packet is shown first
    dts = subtract(pts, reordering);
  }
  if (has_dts || has_pts) {
    const std::int64_t key = has_dts ? packet.dts : packet.pts;
    if (!segment_open_) open_segment(s, add(key, ahead), arrived);
    const std::int64_t placed = place(s, key, step);
    if (has_pts || !reorders) pts = add(placed, ahead);
    if (has_dts || !reorders) {
      dts = placed;
    } else {
      dts = s.begun ? std::min(dts, placed) : subtract(placed, reordering);
    }
  }
  // No frame is shown before it is decoded, and muxers refuse a pts below its dts.
  bool backward = pts != AV_NOPTS_VALUE && pts < dts;
  if (backward) dts = pts;
  const std::optional<std::int64_t> delivered = s.delivered.last;
  const bool repeated = s.delivered.repeats(dts, step, time_base);
  if (delivered && !repeated) s.last = delivered;
  const std::int64_t as_sent = pts;
  if (!repeated && s.last && dts <= *s.last) {
    dts = add(*s.last, 1);
    if (pts != AV_NOPTS_VALUE) pts = std::max(pts, dts);
    backward = backward || (!s.joining && has_dts);
  } else if (!repeated) {
    s.joining = false;
  }
  if (backward) stats_.count(TimestampRepair::kBackward);
  if (kind == StreamKind::kVideo) {
    observe_arrival(s, has_pts && pts == as_sent ? pts : AV_NOPTS_VALUE, arrived);
  }

  packet.dts = dts;
  packet.pts = pts;
  const std::int64_t shown = pts == AV_NOPTS_VALUE ? dts : std::max(pts, dts);
  s.top = s.last ? std::max(s.top, shown) : shown;
  s.sparse = !s.begun || to_us(subtract(dts, *s.last), time_base) > kJumpUs;
  s.last = dts;
  s.step = step;
  s.begun = true;
  s.waited_us = 0;
  return !repeated;
}

std::optional<std::int64_t> Timeline::stamp_frame(std::int64_t pts, std::int64_t duration) {
  const Stream& video = stream(StreamKind::kVideo);
  if (!is_time(pts, video.clock.time_base)) {
    stats_.count(TimestampRepair::kMissing);
    pts = last_frame_ ? add(*last_frame_, step_of(video, duration)) : expected(video);
  } else {
    pts = add(pts, frame_shift_);
  }
  if (delivered_frame_.repeats(pts, step_of(video, duration), video.clock.time_base)) {
    return std::nullopt;
  }
  if (untimed_start_ && last_frame_ && pts <= *last_frame_) {
    // The first pictures had no timestamps (as from a camera with B-frames) and took the places of
    // those that are shown after them: the rest of the segment moves behind them.
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
    pts = add(*last_frame_, 1);
  } else {
    frame_joining_ = false;
  }
  last_frame_ = pts;
  return pts;
}

}  // namespace framelane
