#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "pipeline/av/interrupt.hpp"
#include "pipeline/base/backoff.hpp"
#include "pipeline/base/fault_log.hpp"
#include "pipeline/measure/feed_stats.hpp"
#include "pipeline/output/container.hpp"
#include "pipeline/output/file_pattern.hpp"
#include "pipeline/output/output_options.hpp"
#include "pipeline/output/output_session.hpp"
#include "pipeline/output/retention.hpp"
#include "pipeline/packets/interleaver.hpp"
#include "pipeline/packets/output_inlet.hpp"

namespace framelane {

/// One output: takes packets from its inlet and, on a thread of its own, writes them. It survives
/// what it can: it reopens with backoff after a failed write, starts a new file when the format
/// changes, cuts segments at keyframes, and deletes segments of its own that `keep` does not allow:
/// when it starts, after each segment, when the disk is full, and while nothing is written. A
/// stalled peer slows only itself.
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

  /// Completes what an earlier process left behind, see recover_leftovers(). The output's thread,
  /// before run().
  void recover(const std::stop_token& stop);

  /// The output thread's body: returns after finish(), or when `stop` asks: then what is queued is
  /// written for half a second, the rest dropped and counted, and the trailer written, all in about
  /// a second where the disk answers. Throws
  /// FeedError(kConfiguration) for what no retry mends (unknown muxer, an option nothing consumes).
  /// With `once` (transcode, --once) the first failure is thrown as IoError.
  void run(std::stop_token stop, bool once);

  /// True while its thread is in a call on a local file whose deadline has passed: `timeout`, or a
  /// minute for what may take long on a busy disk. Nothing interrupts such a call. Any thread.
  bool overdue() const { return watched_ && calls_.overdue(); }
  /// For who abandons its thread: shows the output as failed. Should the call come back, nothing
  /// more is written, for another may be at it by then; what can be played of its file is kept. Any
  /// thread.
  void give_up(const std::string& reason);

 private:
  using Clock = std::chrono::steady_clock;

  bool takes_audio(const MediaFormat& format);
  void write_until_end();
  void take(MediaPacket& packet);
  void write_rest();
  void drain(bool flush);
  void deliver(MediaPacket& packet);
  /// False when this video packet has to be left out, since decoding cannot start at it.
  bool begin_session_if_due(const MediaPacket& video);
  void open(const MediaPacket& keyframe);
  void write(MediaPacket& packet);
  void observe_written(const MediaPacket& packet);
  /// Completes the session, if there is one: trailer, final name, retention.
  void close(bool at_end);
  void complete(bool at_end);
  void close_at_end();
  /// Lets go of the session; what can be played of its file is kept.
  void drop_session();
  /// Deletes what `keep` does not allow any more.
  void retain();
  /// The same now and then: files grow old while nothing is written, too.
  void retain_when_due();
  /// From inside a catch: waits until it is time to try again, or rethrows when run once.
  void recover_from(const IoError& error);
  void wait_before_retry(std::chrono::milliseconds time, PacketDrop reason);
  void end(PacketDrop reason);

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

  // Producers and the output's thread.
  std::atomic<bool> audio_warned_{false};
  OutputInlet inlet_;

  // The output's thread and who watches it.
  Interrupt calls_{std::stop_token()};  // on files: watched alone, nothing asks it
  std::atomic<bool> watched_{false};    // peers and FIFOs have the muxer's deadlines
  std::stop_source given_up_;

  // The output's thread alone.
  std::stop_token stop_;
  bool once_ = false;
  Container container_;  // as it turned out on the disk
  Backoff backoff_;
  FaultLog faults_;
  Interleaver interleaver_;
  MediaPacket current_{.packet = make_packet()};
  std::optional<FilePattern> pattern_;
  std::optional<Retention> retention_;
  std::unique_ptr<OutputSession> session_;
  Clock::time_point opened_at_;
  MediaFormatRef format_;
  bool needs_keyframe_ = true;
  std::string last_name_;  // of a file, before it was numbered
  int last_number_ = 0;
  bool playlist_begun_ = false;
};

/// Whether an encoder for this output has to keep its headers out of the packets
/// (AV_CODEC_FLAG_GLOBAL_HEADER).
bool needs_global_header(const OutputOptions& options);

}  // namespace framelane
