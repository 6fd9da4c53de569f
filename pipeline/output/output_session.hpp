#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "pipeline/base/line_clock.hpp"
#include "pipeline/output/container.hpp"
#include "pipeline/output/muxer.hpp"
#include "pipeline/output/output_options.hpp"
#include "pipeline/output/part_file.hpp"
#include "pipeline/output/part_file_recovery.hpp"
#include "pipeline/output/playlist_writer.hpp"
#include "pipeline/packets/media.hpp"
#include "pipeline/packets/packet_queue.hpp"

namespace framelane {

/// One file, one connection, or one part of a playlist: all that is written between a header and
/// its trailer. It begins at a keyframe. Used by one thread; calls block as Muxer's do.
class OutputSession {
 public:
  /// Opens it. `file` is the NAME.part that `url` names, or nothing if it is no file. `playlist`:
  /// of which this is a stretch; null if it is none. `container`, `recovery` and `playlist` must
  /// outlive it, and so must `line_clock`, which says when its pictures were taken. For `stops`,
  /// and for what is thrown, see Muxer.
  OutputSession(const OutputOptions& options, const Container& container,
                std::optional<PartFile> file, PartFileRecovery& recovery, PlaylistWriter* playlist,
                const std::string& url, const MediaPacket& keyframe, const LineClock& line_clock,
                MuxerStops stops);
  ~OutputSession();  ///< does as give_up()
  OutputSession(const OutputSession&) = delete;
  OutputSession& operator=(const OutputSession&) = delete;

  /// True if this audio can be written here: its format is the one the session was opened with, and
  /// it is not from before the session's start.
  bool takes(const MediaPacket& audio) const;
  /// True if this video cannot go on with the renditions' segments: the session has to end before
  /// it. False if it writes no rendition.
  bool leaves_slots(const MediaPacket& video) const;
  /// True if this video lies behind the renditions' segment that is being written, and is a
  /// keyframe that cannot begin a later one: what is before the next such keyframe cannot be
  /// written. False if it writes no rendition.
  bool waits_for_slot(const MediaPacket& video) const;
  /// False if this video would be decoded before the last one that was written.
  bool goes_on_with(const MediaPacket& video) const;
  /// Media time from the session's start to this packet.
  std::chrono::microseconds age_at(const MediaPacket& packet) const;
  /// When the first picture of a file was taken.
  std::chrono::system_clock::time_point taken_from() const { return segment_time_; }
  /// Media time written.
  std::chrono::microseconds length() const;

  /// Writes the packet and changes its timestamps; or only ends a segment before it, if it is video
  /// and only sound is written. False if the container refuses it. Throws
  /// IoError, also if too many packets in a row were refused.
  bool write(MediaPacket& packet);
  /// Once a second, hands what is buffered for a file to the system: if the process is killed, only
  /// that much is lost. Throws IoError.
  void flush_when_due();
  /// Writes the trailer and gives the file its name, which it returns (empty if it is no file).
  /// `end_of_list`: the playlist says that nothing follows. `durable`: see PartFile. Throws
  /// IoError.
  std::string finish(bool end_of_list, bool durable);
  /// Ends it if finish() has not succeeded: a file is cut back to what is whole and left to
  /// `recovery`, and a playlist's segment that is not complete is removed. Returns how many of the
  /// packets that were written are lost (see PacketsInFile). Only the destructor may follow.
  std::uint64_t give_up();
  /// Bytes written since the last call.
  std::uint64_t take_bytes() { return muxer_->take_bytes(); }

 private:
  static constexpr std::chrono::seconds kFlushEvery{1};
  /// A container that has refused so many packets in a row will not take the next one either.
  static constexpr int kMaxRefusedInARow = 250;

  void follow_clock(std::int64_t now_us);
  /// Ends the segment before this packet, if a segment may or must end there.
  void cut_segment_if_due(const MediaPacket& video);
  /// Begins the next segment with this packet.
  void begin_segment(const MediaPacket& video, std::int64_t now_us);
  /// Completes the segment.
  void end_segment(std::int64_t end_us);
  /// The file's writer is gone. Returns how many packets are in it.
  std::uint64_t leave_file(const CutPoints& points);

  const Container& container_;
  std::optional<PartFile> file_;
  PartFileRecovery& recovery_;
  const std::stop_token stop_;
  const MediaFormatRef format_;
  const bool only_sound_;
  const std::int64_t start_us_;
  const std::int64_t reorder_us_;  // from when a keyframe is decoded to when it is shown
  std::int64_t end_us_;
  const LineClock& line_clock_;
  const std::int64_t offset_us_;               // subtracted from timestamps
  const std::optional<std::int64_t> zero_us_;  // LineClock::zero_us() at the start
  std::int64_t shift_us_ = 0;                  // added to timestamps: by so much zero has moved
  std::int64_t followed_us_;                   // the line's time up to which shift_us_ has followed
  std::array<std::int64_t, 2> last_dts_{AV_NOPTS_VALUE, AV_NOPTS_VALUE};  // of video, of audio
  int refused_ = 0;                                                       // packets in a row
  std::chrono::steady_clock::time_point flushed_at_;
  std::unique_ptr<Muxer> muxer_;  // null after give_up()
  std::uint64_t written_ = 0;     // packets

  // Of a playlist.
  PlaylistWriter* const playlist_;
  std::int64_t slot_ = 0;  // of a rendition's segment
  std::int64_t segment_start_us_;
  std::chrono::system_clock::time_point segment_time_;
  std::int64_t last_video_us_;         // when it is decoded
  std::int64_t last_step_us_ = 0;      // to it, from the one before
  std::int64_t keyframe_us_;           // the last one's
  bool header_pending_ = false;        // of MP4: it has a file of its own
  std::uint64_t segment_packets_ = 0;  // in it so far
  bool gap_ = false;                   // before this segment
};

}  // namespace framelane
