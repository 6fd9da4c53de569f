#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>

#include "pipeline/av/interrupt.hpp"
#include "pipeline/base/backoff.hpp"
#include "pipeline/base/failure.hpp"
#include "pipeline/base/fault_log.hpp"
#include "pipeline/base/labels.hpp"
#include "pipeline/measure/feed_stats.hpp"
#include "pipeline/output/container.hpp"
#include "pipeline/output/output_options.hpp"
#include "pipeline/output/output_session.hpp"
#include "pipeline/output/part_file_recovery.hpp"
#include "pipeline/output/retention.hpp"
#include "pipeline/output/rotation.hpp"
#include "pipeline/packets/interleaver.hpp"
#include "pipeline/packets/output_inlet.hpp"

namespace framelane {

/// One output: takes packets from its inlet and writes them, on a thread of its own, so that a slow
/// peer delays no other output. It opens again with backoff after a failure, whatever failed, and
/// begins a new file when the format changes; a format that its container cannot hold costs its own
/// packets alone. It cuts files into segments at keyframes and deletes old segments of its own, as
/// `segment` in its options says: when it starts, after each segment, when the disk is full, and
/// while nothing is written.
class Output {
 public:
  /// `blocks`: see OutputInlet.
  Output(OutputOptions options, OutputStats& stats, FeedStats& feed, bool blocks);
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  const OutputOptions& options() const { return options_; }
  /// Where producers hand in packets.
  OutputInlet& inlet() { return inlet_; }

  /// Completes the part files of an earlier process, see PartFileRecovery. On the output's thread,
  /// before run().
  void recover_part_files(const std::stop_token& stop);

  /// The body of the output's thread. Returns when the inlet has finished and all is written, or
  /// soon after a stop: then it writes what is queued for half a second, drops and counts the rest,
  /// and writes the trailer, all in about a second if the disk answers. It also returns, and has
  /// logged and shown why, if no packet could ever be written (an unknown muxer). With `once`
  /// (transcode, --once) it throws the first failure instead of opening again: IoError, or
  /// FeedError(kConfiguration) for what a retry cannot help (an unused option, a codec that the
  /// container cannot hold).
  void run(std::stop_token stop, bool once);

  /// True while a call lasts longer than allowed: `timeout`, or at least a minute for what may take
  /// long on a busy disk. Nothing interrupts a call on a local file; one to a peer should have
  /// ended by itself. Any thread.
  bool overdue() const { return watched_ && calls_.overdue(); }
  /// Shows the output as failed, for the caller that abandons its thread. If the thread's call
  /// returns after all, the output writes nothing more, since another one may write to the same
  /// place by then; what can be played of its file stays. Any thread.
  void abandon(const std::string& reason);

 private:
  using Clock = std::chrono::steady_clock;

  bool takes_audio(const MediaFormat& format);
  void write_until_end();
  /// After a stop: writes what is queued for a while and drops the rest.
  void write_rest();
  void interleave(MediaPacket& packet);
  /// Writes the packets whose turn has come; with `flush` all of them.
  void drain(bool flush);
  void deliver(MediaPacket& packet);
  /// Opens, cuts or goes on. False if this video packet has to be dropped, since decoding cannot
  /// start at it.
  bool begin_session_if_due(const MediaPacket& video);
  void open(const MediaPacket& keyframe);
  void write(MediaPacket& packet);
  void observe_written(const MediaPacket& packet);
  /// Completes the session, if there is one (trailer, final name), and then deletes old files.
  void close(bool at_end);
  void complete(bool at_end);
  void close_at_end();
  /// Ends the session without a trailer; what can be played of its file stays.
  void drop_session();
  /// Completes files that could not be completed before.
  void retry_recovery();
  void retain();
  void retain_when_due();
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

  void set_state(FeedState state, const std::string& reason = {}) {
    stats_.set_state(run_, state, reason);
  }

  const OutputOptions options_;
  const Container declared_;  // as the options alone tell it
  const std::string subject_;
  OutputStats& stats_;
  const std::uint64_t run_;
  FeedStats& feed_;

  // Shared by the producers and the output's thread.
  std::atomic<bool> audio_warned_{false};
  OutputInlet inlet_;

  // Shared by the output's thread and the one that watches it.
  Interrupt calls_{std::stop_token()};  // times calls, and interrupts none
  std::atomic<bool> watched_{true};     // false for what may take any time, such as a FIFO
  std::stop_source abandoned_;

  // The output's thread alone.
  std::stop_token stop_;
  bool once_ = false;
  Container container_;  // after a look at the path
  Backoff backoff_;
  FaultLog faults_;
  Interleaver interleaver_;
  MediaPacket current_{.packet = make_packet()};
  std::optional<Rotation> rotation_;    // of files
  std::optional<Retention> retention_;  // of segments
  PartFileRecovery recovery_;
  std::unique_ptr<OutputSession> session_;
  Clock::time_point opened_at_;
  MediaFormatRef format_;
  bool needs_keyframe_ = true;
  bool playlist_begun_ = false;
};

/// True if an encoder for this output has to keep its headers out of the packets
/// (AV_CODEC_FLAG_GLOBAL_HEADER).
bool needs_global_header(const OutputOptions& options);

}  // namespace framelane
