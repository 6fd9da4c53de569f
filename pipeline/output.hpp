#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "pipeline/feed_stats.hpp"
#include "pipeline/media.hpp"
#include "pipeline/options.hpp"
#include "pipeline/packet_queue.hpp"

namespace framelane {

/// One output: a bounded packet queue and, on a thread of its own, a muxer that survives what it
/// can: it reopens with backoff after a failed write, starts a new file when the format changes,
/// cuts segments at keyframes, deletes segments of its own that `keep` does not allow: when it
/// starts, after each, when the disk is full, and while nothing is written. A stalled peer slows
/// only itself.
class Output {
 public:
  /// `blocks`: a full queue makes the producer wait, as long as the output is open or opens for the
  /// first time. Otherwise the packet is lost, counted, and the output goes on at the next
  /// keyframe.
  Output(OutputOptions options, OutputStats& stats, FeedStats& feed, bool blocks);
  ~Output();

  const OutputOptions& options() const;
  /// Another answer than the constructor's, once it is known whether the source is live. Any
  /// thread.
  void set_blocks(bool blocks);

  /// Producer threads. Stopped or failed for good: the packet is counted as dropped. In a file
  /// output, packets before the first keyframe are counted as wait_keyframe.
  void push(const AVPacket& packet, StreamKind stream, const MediaFormatRef& format,
            const std::stop_token& stop);
  /// True once after a (re)start that lost packets: the fanout answers by pushing its cached group
  /// of pictures, so that the output resumes at a keyframe at once.
  bool take_resume_request();
  /// No more packets will come: the thread writes what is queued, the trailer, the final name.
  void finish();

  /// Completes what an earlier process left behind, see recover_leftovers(). The output's thread,
  /// before run().
  void recover(const std::stop_token& stop);

  /// The output thread's body: returns after finish(), or when `stop` asks: then what is queued is
  /// written for half a second, the rest dropped and counted, and the trailer written, all in about
  /// a second where the disk answers. Throws
  /// FeedError(kConfiguration) for what no retry mends (unknown muxer, an option nothing consumes).
  /// With `once` (transcode, --once) the first failure is thrown as IoError.
  void run(std::stop_token stop, bool once);

  /// Its thread is in a call on a local file whose deadline has passed: `timeout`, or a minute for
  /// what may take long on a busy disk. Nothing interrupts such a call. Any thread.
  bool overdue() const;
  /// Its thread is given up: shows the output as failed. Should the call come back, nothing more is
  /// written, for another may be at it by then; what can be played of its file is kept. Any thread.
  void give_up(const std::string& reason);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Whether an encoder for this output has to keep its headers out of the packets
/// (AV_CODEC_FLAG_GLOBAL_HEADER).
bool needs_global_header(const OutputOptions& options);

/// Completes what an earlier process left behind at this output's place: NAME.part that holds
/// something playable becomes NAME (or NAME.N when that exists), empty ones are removed. Logs what
/// it did, for the feed of this name; what could not be looked at before the stop stays. Called
/// once per output before its feed's packets come.
void recover_leftovers(const OutputOptions& options, const std::string& feed,
                       const std::stop_token& stop = {});

}  // namespace framelane
