#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "pipeline/base/backoff.hpp"
#include "pipeline/base/failure.hpp"
#include "pipeline/base/fault_log.hpp"
#include "pipeline/feed/branch.hpp"
#include "pipeline/feed/feed_options.hpp"
#include "pipeline/feed/pacer.hpp"
#include "pipeline/frames/frame_ring.hpp"
#include "pipeline/measure/feed_stats.hpp"
#include "pipeline/source/source.hpp"
#include "pipeline/source/timeline.hpp"
#include "pipeline/stage/stage.hpp"

namespace framelane {

/// The source's restart domain, and the head of the feed: opens the source, reads it, opens it
/// again when it is lost, hands packets to the encodes that copy and frames, through the ring and
/// the stage, to those that encode. Lives on the feed's source thread.
class Ingest {
 public:
  struct Parts {
    const FeedOptions& options;
    std::shared_ptr<FeedStats> stats;
    std::vector<Branch>& branches;
    Interrupt& interrupt;       ///< of the source's calls; its token ends reading
    Interrupt& stage_calls;     ///< of those that a GPU may hold up
    FrameRing* ring = nullptr;  ///< null with `stage` when every encode copies
    Stage* stage = nullptr;
    const std::atomic<DropReason>& cancel_reason;
  };
  explicit Ingest(Parts parts);

  /// A call on a GPU that takes so long is overdue: others take milliseconds.
  static constexpr std::chrono::seconds kStageCall{10};

  /// The thread's body. Returns when the source has ended, or after a stop. Throws IoError when the
  /// source is lost for good (a file that breaks or holds nothing, or any source with `once`): what
  /// was read until then is still to be delivered. Throws FeedError when the feed must go.
  void run(std::stop_token cancel);

 private:
  enum class ReadAll { kEnded, kStopped };
  ReadAll read_all(Source& source);
  bool pace(const SourceItem& item, const SourceInfo& source);
  void dispatch_packet(const SourceItem& item, const SourceInfo& source);
  void dispatch_audio(Branch& branch, const AVPacket& packet, const SourceInfo& source);
  void count_lost_audio(const Branch& branch, std::size_t packets);
  void drop_early_audio();
  void delivered(const SourceInfo& source);
  void dispatch_frame(InputFrame&& frame, const SourceInfo& source);
  void submit(InputFrame&& frame);
  void follow_liveness(const SourceInfo& source);
  void follow_media(const SourceInfo& source);
  void follow_format(const InputFrame& frame, const SourceInfo& source);
  void follow_analysis(PixelFormat encoded);
  void set_media(Branch& branch, MediaFormatRef media);
  std::optional<FrameRing::Place> take_place();
  void drop_tickets(DropReason reason);

  Parts parts_;
  bool live_ = false;    // the source that was opened last
  bool blocks_ = false;  // a full ring makes it wait
  const std::stop_token read_stop_;
  std::stop_token cancel_;
  FramePool pool_;
  Timeline timeline_;
  PersistentPipe pipe_;
  Pacer pacer_;
  Backoff backoff_;
  FaultLog faults_;
  bool copies_ = false;   // some encode copies the video
  bool running_ = false;  // the open source has delivered
  bool has_run_ = false;  // some source of this run has, and what it sent could be treated

  std::vector<Branch*> frame_branches_;  // those that encode, in the jobs' order
  std::vector<FrameTicket> tickets_;     // of the frame in hand
  std::optional<FrameFormat> format_;    // what the plans were made for
  bool analyses_ = false;                // those of this format
  PlanRef plan_;
};

}  // namespace framelane
