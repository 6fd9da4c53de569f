#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "pipeline/av/av_ptr.hpp"
#include "pipeline/av/interrupt.hpp"
#include "pipeline/base/labels.hpp"
#include "pipeline/base/line_clock.hpp"
#include "pipeline/encode/close_failures.hpp"
#include "pipeline/encode/encode_options.hpp"
#include "pipeline/encode/encode_plan.hpp"
#include "pipeline/encode/keyframe_times.hpp"
#include "pipeline/frames/frame_job.hpp"
#include "pipeline/frames/frame_ring.hpp"
#include "pipeline/measure/feed_stats.hpp"
#include "pipeline/packets/packet_fanout.hpp"
#include "pipeline/stage/stage.hpp"

namespace framelane {

/// One encode's restart domain. Takes the feed's jobs in order, waits for each conversion, gives
/// the encoder a frame that refers to the converted planes, and publishes the packets. Reopens an
/// encoder that fails, and takes a new one when a job brings a new plan. The first encode also
/// writes each frame's mean luma into the feed's statistics, if the feed is analysed.
///
/// One thread; the references outlive this object.
class Encode {
 public:
  /// `options`: its name, and what is asked for until the first plan comes; each plan has options
  /// of its own. `index`: its consumer of the ring. `line_clock`: while it says that the source is
  /// gone, the encoder is closed, so that recordings end with the last frame before. `call_limit`:
  /// how long a call of a live feed's encoder may take. `tap`: gets the frames that somebody wants
  /// to see; may be null.
  Encode(const EncodeOptions& options, int index, EncodeStats& encode_stats, FeedStats& feed_stats,
         const LineClock& line_clock, PacketFanout& fanout,
         std::chrono::milliseconds call_limit = kCallLimit, SnapshotTap* tap = nullptr);
  ~Encode();

  /// The thread's body. Returns when the ring is closed and empty and the encoder is flushed. After
  /// `cancel` it drops the frames that are left with `cancel_reason` instead of encoding them.
  /// Throws FeedError if the encoder cannot be recovered; by then its frames are dropped, the ring
  /// is closed and `cancel_reason` is kFeedFailed.
  void run(FrameRing& ring, Stage& stage, std::stop_token cancel,
           std::atomic<DropReason>& cancel_reason);

  /// True while a call of the encoder lasts longer than it may. Nothing interrupts such a call. Any
  /// thread.
  bool overdue() const { return calls_.overdue(); }
  /// True if the call under way works on the feed's GPU, if it has one: a call that hangs is the
  /// GPU's fault. Any thread.
  bool on_gpu() const { return on_gpu_ || releases_; }
  /// True while it gives back what a frame was made of. Any thread.
  bool releases() const { return releases_; }
  /// Times the call that opens the encoder for a plan, on the source thread. Nothing interrupts it.
  Interrupt& opening() { return opening_; }

  /// A frame of a live feed takes milliseconds.
  static constexpr std::chrono::seconds kCallLimit{10};

 private:
  /// A frame that the encoder has and whose packet has not come out.
  struct Pending {
    std::int64_t pts = 0;
    std::int64_t duration = 0;  // in the encoder's time base; 0: unknown
    std::int64_t time_us = 0;   // InputFrame::time_us
    FrameTicket ticket;
    std::chrono::steady_clock::time_point decoded_at;
    std::chrono::steady_clock::time_point sent_at;
  };
  /// Closes the encoder, whose threads may be slow to end, and gives back the frame and the packet
  /// in hand, whose memory a GPU may have to unregister.
  struct FreeAtEnd {
    Encode& encode;
    ~FreeAtEnd();
  };
  /// A conversion that takes longer than this has hung: a frame takes milliseconds.
  static constexpr std::chrono::seconds kConversionDeadline{10};
  /// Where nobody waits for the frames, a slow encoder may look at many large ones in one call.
  static constexpr std::chrono::minutes kPatientCallLimit{10};
  /// For opening an encoder, and for closing it, which ends its threads.
  static constexpr std::chrono::minutes kOpenLimit{1};

  void await_job(FrameRing& ring);
  void take(FrameJob& job, Stage& stage);
  void use_plan(const std::shared_ptr<EncodePlan>& plan);
  void analyse(FrameJob& job);
  void encode(FrameJob& job);
  /// Sends a frame, which has this name in traces, or null to flush.
  void send(const AVFrame* frame, std::int64_t time_us = FlightRecorder::kNoFrame);
  /// Publishes the packets that are ready. False if the encoder failed, whether or not it was
  /// opened again.
  bool receive_packets();
  Stage::Wait wait_converted(FrameJob& job, Stage& stage);
  std::vector<Pending>::iterator pending_of(const AVPacket& packet);
  /// Publishes the packet in hand and closes the tickets that it decides.
  void deliver();
  void flush();
  /// Opens the encoder again; the frames it had are dropped.
  void recover(const char* what, int error);
  void drop_pending(DropReason reason);
  void reopen();
  bool gives_up(const std::string& failure = {});
  void give_up(DropReason reason);
  void let_go();
  void leave_gpu() noexcept;
  void close_encoder();
  std::chrono::milliseconds call_limit() const;

  const std::string name_;
  const std::size_t index_;
  EncodeStats& encode_stats_;
  FeedStats& feed_stats_;
  const LineClock& line_clock_;
  PacketFanout& fanout_;
  const std::chrono::milliseconds call_limit_;
  SnapshotTap* const tap_;
  Interrupt calls_{std::stop_token()};  // times the encoder's calls, and interrupts none
  Interrupt opening_{std::stop_token()};
  std::stop_token cancel_;
  Stage* stage_ = nullptr;
  std::shared_ptr<EncodePlan> plan_;
  EncoderPtr encoder_;
  std::atomic<bool> on_gpu_{false};    // the encoder is NVENC, on the feed's GPU
  std::atomic<bool> releases_{false};  // a job, whose memory may be the GPU's
  // With which reason frames are dropped until a job brings another plan: this one's encoder is on
  // a GPU that is lost, or has no session there any more.
  std::optional<DropReason> given_up_;
  FramePtr frame_;
  PacketPtr packet_;
  std::vector<Pending> pending_;
  std::int64_t last_pts_ = INT64_MIN;
  bool said_too_many_ = false;
  KeyframeTimes keyframes_;
  CloseFailures failures_;
};

}  // namespace framelane
