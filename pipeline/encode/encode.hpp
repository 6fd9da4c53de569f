#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <vector>

#include "pipeline/encode/encoder.hpp"
#include "pipeline/frames/frame_ring.hpp"
#include "pipeline/packets/packet_fanout.hpp"
#include "pipeline/stage/stage.hpp"

namespace framelane {

/// One encode's restart domain: takes the feed's jobs in order, waits for each one's conversion,
/// hands the encoder a frame that refers to the converted planes, and publishes what comes out. The
/// first one tells the feed's statistics what the analysis of a frame has found.
/// Reopens an encoder that fails, and follows changes of format. Lives on one thread.
class Encode {
 public:
  /// `index`: of this encode among those that take frames. `global_header` as the outputs need it.
  Encode(const EncodeOptions& options, int index, bool global_header, EncodeStats& encode_stats,
         FeedStats& feed_stats, PacketFanout& fanout);
  ~Encode();

  /// The thread's body. Returns when the ring is closed and empty and the encoder is flushed, or,
  /// after `cancel`, when every frame in hand is dropped with `cancel_reason`. Throws FeedError
  /// when the encoder cannot be brought back; its frames are dropped by then, the ring is closed
  /// and `cancel_reason` says that the feed has failed.
  void run(FrameRing& ring, Stage& stage, std::stop_token cancel,
           std::atomic<DropReason>& cancel_reason);

 private:
  /// A frame inside the encoder.
  struct Pending {
    std::int64_t pts = 0;
    std::int64_t duration = 0;  // in the encoder's time base; 0: unknown
    FrameTicket ticket;
    std::chrono::steady_clock::time_point decoded_at;
    std::chrono::steady_clock::time_point sent_at;
  };
  /// A conversion that takes longer than this has hung: whole frames take milliseconds.
  static constexpr std::chrono::seconds kConversionDeadline{10};
  /// Failures in close succession after which reopening the encoder is no cure.
  static constexpr int kMaxFailures = 3;
  static constexpr int kHealthyPackets = 250;

  void take(FrameJob& job, Stage& stage);
  void use_plan(const std::shared_ptr<EncodePlan>& plan);
  void analyse(FrameJob& job);
  void encode(FrameJob& job);
  /// Sends a frame, or null to flush.
  void send(const AVFrame* frame);
  /// Publishes what is ready; false when the encoder failed and was opened again.
  bool receive_packets();
  Stage::Wait wait_converted(FrameJob& job, Stage& stage);
  void deliver();
  void flush();
  void recover(const char* what, int error);
  void drop_pending(DropReason reason);

  const EncodeOptions& options_;
  const std::size_t index_;
  const bool global_header_;
  EncodeStats& encode_stats_;
  FeedStats& feed_stats_;
  PacketFanout& fanout_;
  std::stop_token cancel_;
  std::shared_ptr<EncodePlan> plan_;
  CodecContextPtr encoder_;
  FramePtr frame_;
  PacketPtr packet_;
  std::vector<Pending> pending_;
  std::int64_t last_pts_ = INT64_MIN;
  int failures_ = 0;
  int packets_since_failure_ = 0;
};

}  // namespace framelane
