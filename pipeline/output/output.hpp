#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>

#include "pipeline/av/interrupt.hpp"
#include "pipeline/base/backoff.hpp"
#include "pipeline/base/failure.hpp"
#include "pipeline/base/fault_log.hpp"
#include "pipeline/base/labels.hpp"
#include "pipeline/base/line_clock.hpp"
#include "pipeline/measure/feed_stats.hpp"
#include "pipeline/output/container.hpp"
#include "pipeline/output/output_options.hpp"
#include "pipeline/output/output_rendition.hpp"
#include "pipeline/output/output_session.hpp"
#include "pipeline/output/part_file_recovery.hpp"
#include "pipeline/output/playlist_writer.hpp"
#include "pipeline/output/rendition_group.hpp"
#include "pipeline/output/retention.hpp"
#include "pipeline/output/rotation.hpp"
#include "pipeline/output/source_gap.hpp"
#include "pipeline/packets/interleaver.hpp"
#include "pipeline/packets/output_inlet.hpp"

namespace framelane {

/// One output: takes packets from its inlet and writes them, on a thread of its own, so that a slow
/// peer delays no other output. It opens again with backoff after a failure, whatever failed, and
/// begins a new file when the format changes; a format that its container cannot hold costs its own
/// packets alone. What it writes of a source that is gone ends then, and gets its name. It cuts
/// files into segments at keyframes, as `segment` in its options says, and leaves it to Retention
/// to delete the old ones.
class Output {
 public:
  /// `line_clock` says when pictures were taken, and when the source is gone. `blocks`: see
  /// OutputInlet. `retention` must outlive it; null: nothing is deleted. `renditions`: those that
  /// this output is one of, see OutputOptions::master, with that index; they must outlive it.
  Output(OutputOptions options, OutputStats& stats, FeedStats& feed, const LineClock& line_clock,
         bool blocks, Retention* retention = nullptr, RenditionGroup* renditions = nullptr,
         std::size_t rendition = 0);
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  const OutputOptions& options() const { return options_; }
  /// Where producers hand in packets.
  OutputInlet& inlet() { return inlet_; }

  /// Goes on with these options, as far as can_change_in_place lets them differ from the present
  /// ones. `queue` counts at once, all else a moment later, or when a wait before another try is
  /// over. Any thread.
  void change(const OutputOptions& options);

  /// Completes the part files of an earlier process, see PartFileRecovery. On the output's thread,
  /// before run().
  void recover_part_files(const std::stop_token& stop);

  /// The body of the output's thread. Returns when the inlet has finished and all is written, or
  /// soon after a stop: then it writes what is queued for half a second, drops and counts the rest,
  /// and writes the trailer, all in about a second if the disk answers. It also returns, and has
  /// logged and shown why, if no packet could ever be written (an unknown muxer). With `once`
  /// (transcode, --once) it throws the first failure instead of opening again: IoError, or
  /// FeedError(kConfiguration) for what a retry cannot help (an unused option, a codec that the
  /// container cannot hold). `drain` says that the feed is to end, and the inlet will soon finish:
  /// a peer that cannot be opened soon after that is given up, as after a stop.
  void run(const std::stop_token& stop, bool once, std::stop_token drain = {});

  /// True while a call lasts longer than allowed: `timeout`, or at least a minute for what may take
  /// long on a busy disk. Nothing interrupts a call on a local file; one to a peer should have
  /// ended by itself. Any thread.
  bool overdue() const { return watched_ && calls_.overdue(); }
  /// Drops what is queued and shows the output as failed, for the caller that abandons its thread.
  /// If the thread's call returns after all, the output writes nothing more, since another one may
  /// write to the same place by then; what can be played of its file stays. Any thread.
  void abandon(const std::string& reason);
  /// run() ends as after a stop. Any thread.
  void stop() { ending_.request_stop(); }

 private:
  using Clock = std::chrono::steady_clock;

  bool takes_audio(const MediaFormat& format);
  /// Counts the packet as lost, if it was to be written.
  void count_lost(const MediaPacket& packet, PacketDrop reason) {
    if (rendition_ && rendition_->only_cuts(packet)) return;
    if (reason == PacketDrop::kWaitKeyframe && has_lost_) return stats_.drop_dependent();
    stats_.drop(reason);
  }
  void write_until_end();
  void take_changes();
  /// Leaves it to Retention which files of these segments stay.
  void keep_files(const std::optional<SegmentOptions>& segment);
  /// After a stop: writes what is queued for a while and drops the rest.
  void write_rest();
  void interleave(MediaPacket& packet);
  /// Writes the packets whose turn has come; with `flush` all of them.
  void drain(bool flush);
  void deliver(MediaPacket& packet);
  /// Ends as after a stop if opening a peer has failed, and the feed is to end. Called inside the
  /// catch.
  void give_up_if_draining(const std::runtime_error& error);
  /// Opens, cuts or goes on. False if this video packet has to be dropped, since decoding cannot
  /// start at it.
  bool begin_session_if_due(const MediaPacket& video);
  /// False if only sound is written and there is none now: nothing is open then.
  bool has_its_stream(const MediaPacket& video);
  /// True if a session can begin with this packet. That of a rendition begins with its segment.
  bool can_begin(const MediaPacket& video);
  /// True if what is written ends where the source is gone.
  bool splits() const { return container_.kind == OutputKind::kFile || playlist_; }
  /// No packet has come for a while. If the source is gone, what is written ends now, so that a
  /// recording is complete and retention sees it, however long the source stays away.
  void end_if_source_is_gone();
  /// Nothing comes that could be written: shows why, if the encode is down.
  void show_if_encode_is_down();
  void open(const MediaPacket& keyframe);
  void write(MediaPacket& packet);
  void observe_written(const MediaPacket& packet);
  /// Completes the session, if there is one: trailer, final name.
  void close(bool at_end);
  void close_at_end();
  /// Tells of a file that is complete. Its times are not known if its session did not complete it.
  void tell_of_file(const std::string& path, const OutputSession* session = nullptr) const;
  /// Throws if run once, and all video was dropped for want of a keyframe.
  void fail_if_none_was_written() const;
  /// Ends the session without a trailer; what can be played of its file stays.
  /// What is lost with it counts as dropped for that reason.
  void drop_session(PacketDrop reason);
  /// Drops the session and what keeps others out of its place.
  void leave_place();
  /// Completes files that could not be completed before.
  void retry_recovery();
  /// Drops the session and waits until it is time to try again, or rethrows the failure if run
  /// once. A FeedError is about the format that was to be written. Called inside the catch.
  void recover_from(const std::runtime_error& error);
  /// Drops what comes. True if the wait ended early: current_ is then a keyframe of another format
  /// than `refused` (null: nothing ends it early).
  bool wait_before_retry(std::chrono::milliseconds time, PacketDrop reason,
                         const MediaFormatRef& refused);
  void end(PacketDrop reason);
  /// Shows that it has ended, or with what it was in trouble at the end.
  void show_end();

  /// The time limit of calls that may take long on a busy disk.
  std::chrono::milliseconds long_call() const;

  /// `code`: see OutputStats.
  void set_state(FeedState state, const std::string& reason = {}, std::string_view code = {}) {
    stats_.set_state(run_, state, reason, code);
  }

  const OutputOptions options_;  // at first, see change()
  const Container declared_;     // as the options alone tell it
  const std::string subject_;
  OutputStats& stats_;
  std::atomic<std::uint64_t> run_{0};  // of run(); before it another output may be this one's place
  FeedStats& feed_;
  const LineClock& line_clock_;
  Retention* const retention_;

  // Shared by the producers and the output's thread.
  std::atomic<bool> audio_warned_{false};
  OutputInlet inlet_;

  // Shared by the output's thread and the one that watches it.
  Interrupt calls_{std::stop_token()};  // times calls, and interrupts none
  std::atomic<bool> watched_{true};     // false for what may take any time, such as a FIFO
  std::stop_source abandoned_;

  std::atomic<bool> has_changed_{false};
  std::mutex changed_mutex_;
  std::optional<OutputOptions>
      changed_;  // guarded by changed_mutex_: what take_changes() is to take

  // The output's thread alone.
  std::stop_source ending_;  // asked by a stop, or when a peer is given up
  const std::stop_token stop_ = ending_.get_token();
  std::stop_token drain_;
  bool opening_ = false;
  bool once_ = false;
  Container container_;  // after a look at the path
  Backoff backoff_;
  FaultLog faults_;
  SourceGap source_gap_;
  Interleaver interleaver_;
  MediaPacket current_{.packet = make_packet()};
  std::optional<Rotation> rotation_;       // of files
  std::optional<SegmentOptions> segment_;  // says which files stay
  std::unique_ptr<KeptFiles> kept_;        // null: all do
  PartFileRecovery recovery_;
  std::optional<OutputRendition> rendition_;
  std::optional<PlaylistWriter> playlist_;
  std::unique_ptr<OutputSession> session_;
  Clock::time_point opened_at_;
  MediaFormatRef format_;
  bool needs_keyframe_ = true;
  bool has_lost_ = false;            // a write has failed, and no keyframe was taken since
  bool waits_for_keyframe_ = false;  // packets were dropped because none has come
  bool encode_is_down_ = false;      // and the reason is shown
};

}  // namespace framelane
