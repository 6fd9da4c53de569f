#pragma once

extern "C" {
#include <libavcodec/packet.h>
}

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>

#include "pipeline/measure/feed_stats.hpp"
#include "pipeline/packets/media.hpp"

namespace framelane {

/// Turns the timestamps of a source into a line that never goes backwards, across jumps, wraps,
/// gaps, loops and reconnects (design, section 6). Belongs to the source thread and lives as long
/// as the feed, so that the line continues over restarts of the source. Counts every repair.
///
/// The line starts at 0 with the earliest stream of the first segment; dts of reordered video may
/// lie below. Where nothing is wrong every stream is shifted by one constant number of ticks, so
/// distances between timestamps come out exactly as they were.
///
/// Repairs: a packet more than 5 s off the line, and off the other stream where both are on one
/// line (a stream may pause), is put where the next one was expected, and the third in a row that
/// agrees with the others makes theirs the new line (kJump, once per attempt, also when audio and
/// video jump together). A dts not above the last one becomes the last one plus
/// a tick, and its pts stays unless it would lie below (kBackward). A wrapped counter is unwrapped
/// (kWrap); neither may a pts lie below its dts, which is lowered to it (kBackward). What is
/// missing, or so far out that arithmetic with it overflows, is filled from the duration, the rate
/// or the previous packet (kMissing); a dts that is worked out of its pts is no repair, since
/// Matroska and RTP carry none. Durations of more than an hour or below zero become unknown.
class Timeline {
 public:
  explicit Timeline(FeedStats& stats) : stats_(stats) {}

  /// A source was opened, or a file starts again: the next packet continues the line, which is
  /// no repair. `start`: the earliest timestamp of the streams that will come, where the container
  /// tells; otherwise the first packet's counts as that. Followed by set_stream for each stream.
  void begin_segment(std::optional<std::chrono::microseconds> start = std::nullopt);

  /// What the line needs to know of a stream of the new segment.
  struct StreamClock {
    AVRational time_base{1, 90000};  ///< of the packets that come
    AVRational frame_rate{0, 1};     ///< 0/1 when unknown
    int wrap_bits = 64;              ///< width of the source's counter
    int reorder_delay = 0;           ///< packets that dts runs ahead of pts because of B-frames
  };
  void set_stream(StreamKind kind, const StreamClock& clock);

  /// Rewrites pts and dts of a packet in decoding order, in its own time base. Audio and video
  /// share one offset, so they stay in step. dts is always set and increases strictly; pts stays
  /// missing only where it is missing on a stream with B-frames, where it cannot be told.
  void stamp(StreamKind kind, AVPacket& packet);

  /// The pts of the next decoded frame, given what the decoder says (AV_NOPTS_VALUE: nothing),
  /// from packets that went through stamp(). Increases strictly. `duration` 0: unknown.
  std::int64_t stamp_frame(std::int64_t pts, std::int64_t duration);

 private:
  struct Stream {
    StreamClock clock;
    std::int64_t offset = 0;           // ticks from the source's line to ours
    std::int64_t offset_us = 0;        // the shared offset that `offset` was made from
    std::int64_t wrap = 0;             // ticks added because the source's counter wrapped
    std::optional<std::int64_t> last;  // the last dts given out
    std::int64_t top = 0;              // the highest timestamp given out
    std::int64_t step = 0;             // from the last dts to the one expected next
    bool begun = false;                // has had a packet in this segment
    bool joining = true;               // stepping back is part of joining lines, no repair
    int off_line = 0;                  // consecutive packets that agree on another line
    std::int64_t candidate_us = 0;     // where that line expects its next packet
  };

  Stream& stream(StreamKind kind) { return streams_[static_cast<std::size_t>(kind)]; }
  const Stream& other(const Stream& s) const { return streams_[&s == &streams_[0] ? 1 : 0]; }
  std::int64_t step_of(const Stream& s, std::int64_t duration) const;
  std::int64_t expected(const Stream& s) const;
  std::int64_t end_us() const;
  bool on_line(const Stream& s, std::int64_t time, bool shared) const;
  void open_segment(const Stream& s, std::int64_t first);
  std::int64_t place(Stream& s, std::int64_t key, std::int64_t step);
  std::int64_t jump(Stream& s, std::int64_t key, std::int64_t step);

  FeedStats& stats_;
  std::array<Stream, 2> streams_;
  std::int64_t offset_us_ = 0;  // of the newest line any stream is on
  std::optional<std::int64_t> start_us_;
  bool segment_open_ = false;
  std::optional<std::int64_t> last_frame_;
  bool frame_joining_ = true;
  bool untimed_start_ = false;    // the segment's first picture had no timestamp
  std::int64_t frame_shift_ = 0;  // of this segment's frames against its packets
};

}  // namespace framelane
