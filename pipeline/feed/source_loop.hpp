#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>

#include "pipeline/av/interrupt.hpp"
#include "pipeline/base/backoff.hpp"
#include "pipeline/base/fault_log.hpp"
#include "pipeline/base/labels.hpp"
#include "pipeline/base/line_clock.hpp"
#include "pipeline/feed/feed_options.hpp"
#include "pipeline/feed/frame_dispatch.hpp"
#include "pipeline/feed/pacer.hpp"
#include "pipeline/feed/packet_dispatch.hpp"
#include "pipeline/feed/run_changes.hpp"
#include "pipeline/frames/frame_pool.hpp"
#include "pipeline/measure/feed_stats.hpp"
#include "pipeline/packets/snapshot_tap.hpp"
#include "pipeline/source/source.hpp"
#include "pipeline/source/timeline.hpp"
#include "pipeline/stage/stage.hpp"

namespace framelane {

/// The source's restart domain. Opens the source, reads it at the pace that is asked for, hands
/// packets and frames to their dispatches, and opens the source again when it is lost. Between two
/// items it takes over what another configuration changes. Source thread.
class SourceLoop {
 public:
  /// All of it outlives the SourceLoop.
  struct Parts {
    const FeedOptions& options;
    FeedStats& stats;
    LineClock& line_clock;
    Interrupt& source_calls;  ///< of the source's calls; its stop token ends reading
    PacketDispatch& packets;
    FrameDispatch* frames;  ///< null, with `stage`, if every encode copies
    Stage* stage;
    RunChanges& changes;
    SnapshotTap* tap;  ///< may be null
  };
  explicit SourceLoop(Parts parts);

  /// The thread's body. Returns when the source has ended or reading was stopped. Throws IoError if
  /// the source is lost for good: a file that breaks or holds nothing, or any source with `once`.
  /// What was read until then is still to be delivered. Throws FeedError if the feed must go.
  void run();
  /// After run(): no more changes are taken.
  void close();

 private:
  /// Why a source has to be opened again.
  struct Loss {
    IoFault fault;
    std::string reason;
    bool waits = true;  // false: the next try may come at once
  };
  enum class ReadAll { kEnded, kStopped };

  /// From opening a source to its end. Nothing if it was the last one.
  std::optional<Loss> run_source();
  ReadAll read_all(Source& source);
  bool pace(const SourceItem& item, const SourceInfo& source);
  void dispatch(SourceItem& item, const SourceInfo& source);
  void note_format(const SourceInfo& source);
  /// `time_us`: of the picture, on the feed's line.
  void note_delivery(const SourceItem& item, const SourceInfo& source, std::int64_t time_us);
  void apply_liveness();
  /// Takes over what has changed. True if the source is to be tried at once.
  bool take_changes();
  void wait_before_retry(std::chrono::milliseconds time);

  const Parts parts_;
  const std::stop_token read_stop_;
  const std::uint32_t run_;  // see FeedStats::run
  FramePool pool_;           // of decoded frames
  Timeline timeline_;
  PersistentPipe pipe_;
  SaidOfProducer said_;
  Pacer pacer_;
  Backoff backoff_;
  FaultLog faults_;
  OnFull on_full_;
  MediaFormatRef media_;        // what came last is of this format, if there is one
  bool has_format_ = false;     // something has come
  MediaFormatRef shown_media_;  // of the size that the statistics have, while video is copied
  bool live_ = false;           // the source that was opened last
  bool running_ = false;        // the open source has delivered something
  std::optional<std::uint64_t> masks_;  // that begin with the next frame
  bool has_run_ = false;  // some source of this run has, and the encodes could take it
};

}  // namespace framelane
