#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include "pipeline/av.hpp"
#include "pipeline/feed_stats.hpp"
#include "pipeline/frame_importer.hpp"
#include "pipeline/frame_pool.hpp"
#include "pipeline/input_frame.hpp"
#include "pipeline/options.hpp"
#include "pipeline/timeline.hpp"

namespace framelane {

/// Decodes one video stream with libavcodec's frame threads, straight into the pool where the
/// decoder can. Damage is counted and told once, never thrown: a frame that the decoder could
/// conceal is still delivered, and the decoder sees every packet. Packets that it swallows without
/// a word, as those before the first keyframe, count as corrupt once no frame can come of them any
/// more; a lone one behind a packet with a frame does not, for it may be a second field or a hidden
/// reference. One thread calls; FFmpeg's threads only take buffers.
class Decoder {
 public:
  /// `live`: few frame threads (codec_threads). `options` is what the demuxer left over; what the
  /// decoder consumes is removed from it. Throws FeedError(kConfiguration) when this build of
  /// FFmpeg has no such decoder or refuses the stream.
  Decoder(const AVCodecParameters& parameters, AVRational time_base, AVRational frame_rate,
          Dictionary& options, const InputOptions& input, bool live, FramePool& pool,
          FeedStats& stats, Timeline& timeline, FrameImporter& importer);
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  /// FFmpeg's name of the decoder.
  std::string name() const { return context_->codec->name; }
  /// As it was opened; to look at.
  const AVCodecContext& context() const { return *context_; }

  /// Gives the decoder a stamped packet, or null: no more will come before reset(). Only after
  /// receive() has said kNeedInput.
  void send(AVPacket* packet);

  enum class Flow { kReady, kNeedInput, kEndOfStream };
  /// The next frame in display order, with its pts from the timeline. Throws FeedError.
  Flow receive(InputFrame& frame);

  /// Forgets what is inside, for packets that do not continue the last ones.
  void reset();

 private:
  static int get_buffer(AVCodecContext* context, AVFrame* frame, int flags);
  void failed(int error);
  void damaged(DecodeFault fault);
  void count_damage();
  void expect_frame(AVPacket& packet);
  void match_frame();
  void settle(std::int64_t packet);

  FramePool& pool_;
  FeedStats& stats_;
  Timeline& timeline_;
  FrameImporter& importer_;
  std::atomic<bool> out_of_memory_{false};
  std::chrono::nanoseconds working_{0};  // on what has not become a frame yet
  bool damage_told_ = false;
  int damaged_packets_ = 0;  // counted as truncated; their frames are marked corrupt

  // Packets by number, the first is 1: which have become frames. Decided up to `settled_`.
  std::array<bool, 256> became_frame_{};
  std::int64_t sent_ = 0;
  std::int64_t settled_ = 0;
  bool lone_ = false;                 // the last settled packet has a frame: the next may lack one
  int accounted_ = 0;                 // packets without a frame that are explained already
  std::int64_t accounted_until_ = 0;  // the packet sent last when that was told

  FramePtr frame_;
  CodecContextPtr context_;  // last: its threads use the members above until it is freed
};

}  // namespace framelane
