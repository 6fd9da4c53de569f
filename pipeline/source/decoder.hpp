#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <string>

#include "pipeline/av/av_ptr.hpp"
#include "pipeline/av/buffer_ref.hpp"
#include "pipeline/av/dictionary.hpp"
#include "pipeline/base/failure.hpp"
#include "pipeline/frames/frame_pool.hpp"
#include "pipeline/frames/input_frame.hpp"
#include "pipeline/measure/feed_stats.hpp"
#include "pipeline/source/frame_importer.hpp"
#include "pipeline/source/input_options.hpp"
#include "pipeline/source/source.hpp"
#include "pipeline/source/timeline.hpp"
#include "pipeline/stage/stage.hpp"

namespace framelane {

/// FFmpeg's own decoder of a codec where it can leave the work to NVDEC; null: it has none. (The
/// decoders named *_cuvid are NVIDIA's, with other errors and fewer properties of the frames.)
const AVCodec* nvdec_of(AVCodecID id);
/// The name of that decoder on a GPU: "h264_nvdec".
std::string nvdec_name(const AVCodec& codec);

/// Decodes one video stream: with NVDEC, which leaves the frames on the stage's GPU, or with
/// libavcodec's frame threads, straight into the pool where the decoder can.
///
/// `decoder: auto` takes NVDEC where the stage is on a GPU. When that does not take the stream, or
/// fails before its first frame, the packets are decoded again in software and no frame is missing;
/// when it fails later, or the stage leaves the GPU, software goes on from the packet in hand, and
/// what depends on frames that were on the GPU is missing until the next keyframe. Why is logged
/// and in the feed's status. With `decoder: nvdec` it is a FeedError.
///
/// Damage is counted and told once, never thrown: a frame that the decoder could
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
          Dictionary& options, const InputOptions& input, bool live, const SourceContext& context,
          FrameImporter& importer);
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  /// FFmpeg's name of the decoder: "h264", or "h264_nvdec" on a GPU.
  std::string name() const;
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
  /// A packet that may have to be decoded again; null: the end.
  struct Kept {
    PacketPtr packet;
    std::int64_t number = 0;
  };

  static int get_buffer(AVCodecContext* context, AVFrame* frame, int flags);
  static AVPixelFormat choose_format(AVCodecContext* context, const AVPixelFormat* offered);
  bool open_on_gpu(Dictionary& options);
  void open_in_software(Dictionary& options);
  int open(const AVCodec& codec, Dictionary& options);
  void quieten();
  static FeedError no_memory();
  void keep_exception() noexcept;
  std::string prepare_surfaces(AVCodecContext& context) const;
  int decode(AVPacket* packet);
  int take_frame();
  void keep(const AVPacket* packet);
  void leave_gpu(FeedFault fault, const std::string& why);
  void go_on_in_software(FeedFault fault, const std::string& why);
  void came_from_gpu();
  bool gpu_failed(int error);
  bool follow_refusal(int result);
  bool decode_again();
  void failed(int error);
  void damaged(DecodeFault fault);
  void count_damage();
  void expect_frame(AVPacket& packet);
  void match_frame();
  void settle(std::int64_t packet);

  const CodecParametersPtr parameters_;
  const AVRational time_base_;
  const AVRational frame_rate_;
  const bool live_;
  const bool must_use_gpu_;
  Stage* const stage_;
  const int ring_;
  FramePool& pool_;
  FeedStats& stats_;
  Timeline& timeline_;
  FrameImporter& importer_;
  const Dictionary options_;  // for opening once more

  BufferRef gpu_;           // what NVDEC is reached through; null: software decodes
  std::string refusal_;     // why NVDEC does not take the stream, found out inside FFmpeg
  bool emptying_ = false;   // NVDEC's last frames are taken before software goes on
  bool proven_ = false;     // a frame has come from NVDEC
  int gpu_failures_ = 0;    // since the last one
  std::deque<Kept> kept_;   // that NVDEC has made no frame of: the last one, all while unproven
  std::deque<Kept> again_;  // those that software has yet to get
  std::mutex exception_mutex_;
  std::exception_ptr exception_;         // the first that FFmpeg's callbacks had to keep from it
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
