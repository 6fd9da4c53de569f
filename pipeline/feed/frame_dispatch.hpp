#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "kernels/conversion.hpp"
#include "kernels/pixel_format.hpp"
#include "pipeline/av/interrupt.hpp"
#include "pipeline/base/failure.hpp"
#include "pipeline/base/labels.hpp"
#include "pipeline/base/line_clock.hpp"
#include "pipeline/encode/frame_format.hpp"
#include "pipeline/feed/catch_up.hpp"
#include "pipeline/feed/encode_route.hpp"
#include "pipeline/feed/feed_deadlines.hpp"
#include "pipeline/feed/feed_options.hpp"
#include "pipeline/feed/frame_drawer.hpp"
#include "pipeline/feed/frame_masker.hpp"
#include "pipeline/feed/run_changes.hpp"
#include "pipeline/frames/frame_job.hpp"
#include "pipeline/frames/frame_ring.hpp"
#include "pipeline/frames/input_frame.hpp"
#include "pipeline/measure/feed_stats.hpp"
#include "pipeline/source/source.hpp"
#include "pipeline/stage/stage.hpp"

namespace framelane {

/// Hands decoded frames to the encodes that take them. Opens each frame's tickets in the ledger,
/// makes new plans when the format changes, takes a place in the ring, and submits the job to the
/// stage. Source thread.
class FrameDispatch {
 public:
  /// All of it outlives the FrameDispatch.
  struct Parts {
    const FeedOptions& options;
    const std::shared_ptr<FeedStats>& stats;
    std::vector<EncodeRoute*> routes;
    FrameRing& ring;
    Stage& stage;
    Interrupt& stage_calls;  ///< of the calls that a GPU may hold up
    const FeedDeadlines& deadlines;
    const LineClock& line_clock;
    const std::atomic<DropReason>& cancel_reason;
  };
  /// `cancel` ends waits for a place in the ring and for full queues.
  FrameDispatch(Parts parts, std::stop_token cancel);

  /// The frame goes to every encode, or is dropped in every encode and counted: if the ring is full
  /// and the feed does not wait, after a cancel, and if reading was stopped before the frame had
  /// its encoders. It is dropped in an encode that is down, because no encoder can be opened for
  /// it. Waits for a place in the ring if the feed waits when full, and for a moment if a live
  /// source is catching up (CatchUp). For a new format it waits until each encode with NVENC has
  /// done with the frames before. Throws FeedError if no encode of the feed can work, and if one
  /// cannot and the feed runs once; the frame's tickets are dropped then.
  /// A frame that cannot be masked goes nowhere: its tickets are dropped, and the FeedError of
  /// FrameMasker ends the feed.
  void dispatch(InputFrame&& frame, const SourceInfo& source);
  /// From the next frame on: which encodes there are, how each encodes, what is masked and drawn,
  /// and `on_full`. An encode of which no more than what is drawn has changed keeps its encoder;
  /// another one gets a new encoder, and the frames before it are encoded by the old one.
  void change(const RunChanges::Change& change);

 private:
  void add(EncodeRoute& route);
  void remove(EncodeRoute& route);
  void take_options(EncodeRoute& route, const std::shared_ptr<const FeedOptions>& options);
  void count_outputs();
  StageMasking stage_masking() const;
  /// Makes new plans if the format is not the one they were made for, and, when it is time, for
  /// encodes that are down. False if reading was stopped before all encoders were open.
  bool apply_format(const InputFrame& frame, const SourceInfo& source);
  /// The same for one encode. `same_pictures`: its encoder may stay. Throws FeedError.
  bool apply_format(std::size_t index, const FrameFormat& format, const SourceInfo& source,
                    bool same_pictures);
  /// Opens the encode's encoder for such frames, and prepares what is drawn on them. Throws
  /// FeedError; no encoder is open then.
  std::shared_ptr<EncodePlan> open_encoder(EncodeRoute& route, const FrameFormat& format,
                                           const SourceInfo& source);
  /// True if what keeps this encode from working ends the feed, even if others work.
  bool ends_feed(const FeedError& refusal, const SourceInfo& source, bool was_down) const;
  void name_smaller_source() const;
  bool lost_its_gpu(const EncodeRoute& route) const;
  bool close_encoder(std::size_t index);
  void take_down(EncodeRoute& route, const FeedError& refusal);
  void prepare_stage(const FrameFormat& format);
  void apply_analysis();
  void draw(const InputFrame& frame, const SourceInfo& source);
  /// `stage_masks`: see FrameJob::masks.
  void submit(InputFrame&& frame, const SourceInfo& source, bool stage_masks);
  /// A job in a place that was just taken, of which nothing is wanted yet.
  FrameJob& begin_job(FrameRing::Place& place) const;
  /// Hands a filled place to the encodes; a job without conversion counts as ready. False if the
  /// ring is closed: the job still has its tickets.
  bool publish(FrameRing::Place& place, bool converts);
  void allocate_target(JobOutput& output, const EncodeRoute& route,
                       std::size_t side_data_bytes) const;
  void copy_what_is_held(InputFrame& frame) const;
  std::optional<FrameRing::Place> take_place(const InputFrame& frame, const SourceInfo& source);
  void drop_tickets(DropReason reason);

  const Parts parts_;
  const std::stop_token cancel_;
  const std::uint32_t run_;   // see FeedStats::run
  const std::string device_;  // that the feed began on
  const std::shared_ptr<RingJobs> ring_jobs_;
  OnFull on_full_;
  bool copies_;                                                // some encode copies the video
  std::vector<EncodeRoute*> routes_;                           // those that encode
  std::vector<std::shared_ptr<FeedStats::EncodeLine>> lines_;  // likewise
  std::vector<FrameTicket> tickets_;                           // likewise: of the frame in hand
  std::vector<std::shared_ptr<const Overlays>> drawn_;         // likewise: on it
  std::size_t outputs_ = 0;            // of a job, see EncodeRoute::consumer
  std::optional<FrameFormat> format_;  // that the plans were made for
  bool analyses_ = false;              // frames of this format are analysed
  bool restyles_ = false;              // other masks and overlays begin with the frame in hand
  bool reroutes_ = false;              // other encodes do
  FrameMasker masker_;
  FrameDrawer drawer_;
  CatchUp catch_up_;
  PlanRef plan_;
};

}  // namespace framelane
