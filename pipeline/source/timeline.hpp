#pragma once

extern "C" {
#include <libavcodec/packet.h>
#include <libavutil/rational.h>
}

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "pipeline/base/line_clock.hpp"
#include "pipeline/measure/feed_stats.hpp"
#include "pipeline/packets/media.hpp"
#include "pipeline/source/capture_clock.hpp"

namespace framelane {

/// Turns the timestamps of a source into a line that never goes backwards, across jumps, wraps,
/// gaps, loops and reconnects. Lives as long as the feed, so that the line continues when the
/// source is opened again. The source thread alone calls; nothing blocks, and no clock is read: the
/// caller says when a packet arrived.
///
/// The line starts at 0 with the earliest stream of the first segment; the dts of reordered video
/// may lie below. While nothing is wrong, each stream is shifted by a constant number of ticks, so
/// that distances between its timestamps stay exactly as they were.
///
/// If the source tells time (StreamClock::live, ours), a LineClock is told when pictures of the
/// line were taken, and a new segment lies as far behind the last one as it was taken later: an
/// outage stays a gap. A camera that repeats, when it comes back, what it sent before is not
/// delivered twice. The segments of other sources follow one another without a gap.
///
/// Each repair is counted as one of these:
/// - kJump: a packet is more than 5 s off the line. It is on the line if it is as much later than
///   the last one as it arrived later, for a camera may send a picture every ten seconds. If both
///   streams are on the same line, it must also be more than 5 s from the other stream, because a
///   stream may pause. The packet is put where the next packet was expected. If three such packets
///   in a row agree with each other, the shift changes, and the line goes on with their timestamps;
///   but a plausible gap (Gaps) is believed then, and the shift stays. Counted once per attempt,
///   and once when audio and video jump together.
/// - kWrap: the source's counter wrapped; it is unwrapped.
/// - kBackward: one of two cases. A dts is not above the last one: it becomes the last one plus a
///   tick, and its pts is raised to it if it lies below. Or a pts lies below its own dts: the dts
///   is lowered to the pts.
/// - kMissing: a timestamp is missing, or so large that arithmetic with it overflows. It is filled
///   from the duration, the rate or the previous packet. A missing dts that follows from its pts is
///   not counted, since Matroska and RTP carry no dts.
///
/// Durations below zero or above an hour become unknown (0).
class Timeline {
 public:
  using Clock = std::chrono::steady_clock;
  /// A packet this far off the line has jumped.
  static constexpr std::int64_t kJumpUs = 5'000'000;

  Timeline(FeedStats& stats, LineClock& clock)
      : stats_(stats), line_clock_(clock), capture_(clock) {}

  /// A source was opened, or a file starts again: the next packet continues the line, and that is
  /// no repair. `start`: the earliest timestamp of the new segment, if the container says it;
  /// otherwise that of the first packet. `delay`: of a live source, the least of (arrival −
  /// timestamp) that is known; otherwise that of the first packet. set_stream must follow for each
  /// stream.
  void begin_segment(std::optional<std::chrono::microseconds> start = std::nullopt,
                     std::optional<std::chrono::microseconds> delay = std::nullopt);

  /// Which steps forward of more than kJumpUs are gaps, and no jumps, however soon they come.
  enum class Gaps {
    kNone,
    /// Those of up to ten minutes: of a file that may be cut together from pieces with clocks of
    /// their own, or damaged. Three packets must agree, and the other stream must not go on
    /// meanwhile; unless there is no other stream, and the picture before was as far from its own
    /// predecessor, if it had one.
    kPlausible,
    kAll  ///< those of up to an hour: of a file with one clock
  };

  /// How a stream of the new segment counts time.
  struct StreamClock {
    AVRational time_base{1, 90000};  ///< of its packets
    AVRational frame_rate{0, 1};     ///< 0/1 when unknown
    int wrap_bits = 64;              ///< width of the source's counter; 64: it does not wrap
    int reorder_delay = 0;           ///< how many packets dts runs ahead of pts, for B-frames
    /// The times are readings of Clock. None of them is a jump.
    bool ours = false;
    /// Packets come as their pictures are taken, and the times are the camera's.
    bool live = false;
    Gaps gaps = Gaps::kNone;
  };
  void set_stream(StreamKind kind, const StreamClock& clock);

  /// Rewrites pts and dts of the next packet in decoding order, in its own time base. Audio and
  /// video share one offset, so they stay in step. dts is set and increases strictly. pts is set,
  /// but for a packet without one on a stream with B-frames, where it cannot be told. `arrived`:
  /// when the packet was read. False if the packet repeats one from before the source was opened
  /// again: then its times are not above the last ones.
  bool stamp(StreamKind kind, AVPacket& packet, Clock::time_point arrived);

  /// The pts of the next decoded frame. `pts`: what the decoder says, from packets that went
  /// through stamp(); AV_NOPTS_VALUE: nothing. `duration` 0: unknown. The result increases
  /// strictly. Nothing if the frame repeats an earlier one.
  std::optional<std::int64_t> stamp_frame(std::int64_t pts, std::int64_t duration);

 private:
  /// What earlier segments have delivered, until this one is past it.
  struct Delivered {
    std::optional<std::int64_t> last;  // ticks
    bool comes_again = false;          // this segment begins with some of it

    /// True if what lies at `time` has been delivered. `step`: to what is expected next.
    bool repeats(std::int64_t time, std::int64_t step, AVRational time_base);
  };
  struct Stream {
    StreamClock clock;
    std::int64_t offset = 0;           // ticks from the source's line to ours
    std::int64_t offset_us = 0;        // the shared offset that `offset` was made from
    std::int64_t wrap = 0;             // ticks added because the source's counter wrapped
    std::optional<std::int64_t> last;  // the last dts given out
    Delivered delivered;
    std::int64_t top = 0;           // the highest timestamp given out
    std::int64_t step = 0;          // from the last dts to the one that is expected next
    Clock::time_point arrived;      // the last packet
    std::int64_t waited_us = 0;     // from the last packet's arrival to that of the one in hand
    bool begun = false;             // has had a packet in this segment
    bool sparse = true;             // the last two packets are far apart, if there are two
    bool joining = true;            // on a new line: a first step back is no repair
    int off_line = 0;               // packets in a row that agree on another line
    std::int64_t candidate_us = 0;  // where that other line expects its next packet
    std::optional<std::int64_t> other_before;  // the other stream's `last` before those packets
  };

  Stream& stream(StreamKind kind) { return streams_[static_cast<std::size_t>(kind)]; }
  const Stream& other(const Stream& s) const { return streams_[&s == &streams_[0] ? 1 : 0]; }
  std::int64_t step_of(const Stream& s, std::int64_t duration) const;
  std::int64_t expected(const Stream& s) const;
  std::int64_t end_us() const;
  std::int64_t top_us() const;
  std::int64_t longest_gap_us(const Stream& s) const;
  bool on_line(const Stream& s, std::int64_t time, bool shared) const;
  void open_segment(const Stream& s, std::int64_t first, Clock::time_point arrived);
  void place_by_clock(const Stream& s, std::int64_t begin_us, std::int64_t delay_us);
  void observe_arrival(const Stream& s, std::int64_t pts, Clock::time_point arrived);
  std::int64_t place(Stream& s, std::int64_t key, std::int64_t step);
  std::int64_t jump(Stream& s, std::int64_t key, std::int64_t step);

  FeedStats& stats_;
  LineClock& line_clock_;
  CaptureClock capture_;
  std::array<Stream, 2> streams_;
  std::int64_t offset_us_ = 0;  // of the newest line that any stream is on
  std::optional<std::int64_t> start_us_;
  std::optional<std::int64_t> delay_us_;
  bool segment_open_ = false;
  // The longest silences of late between the arrivals of two pictures.
  std::int64_t pause_us_ = 0;    // one that came twice
  std::int64_t piece_us_ = 0;    // of kLongestPieceUs at most
  std::int64_t silence_us_ = 0;  // any
  std::optional<std::int64_t> last_frame_;
  Delivered delivered_frame_;
  bool frame_joining_ = true;
  bool untimed_start_ = false;    // the segment's first picture had no timestamp
  std::int64_t frame_shift_ = 0;  // added to the pts of this segment's frames
};

}  // namespace framelane
