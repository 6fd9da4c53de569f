#pragma once

extern "C" {
#include <libavcodec/avcodec.h>
}

#include <chrono>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string>

#include "pipeline/av/av_ptr.hpp"
#include "pipeline/av/dictionary.hpp"
#include "pipeline/base/failure.hpp"
#include "pipeline/frames/frame_pool.hpp"
#include "pipeline/frames/input_frame.hpp"
#include "pipeline/measure/feed_stats.hpp"
#include "pipeline/source/frame_importer.hpp"
#include "pipeline/source/input_access.hpp"
#include "pipeline/source/input_options.hpp"
#include "pipeline/source/nvdec_trial.hpp"
#include "pipeline/source/packet_account.hpp"
#include "pipeline/source/source.hpp"
#include "pipeline/source/timeline.hpp"

namespace framelane {

/// Decodes one video stream: with NVDEC, which leaves the frames on the stage's GPU, or with
/// libavcodec's frame threads, straight into the pool where the decoder can.
///
/// `decoder: auto` takes NVDEC where the stage is on a GPU. If NVDEC does not take the stream, or
/// fails before its first frame, software decodes the same packets again and no frame is missing.
/// If NVDEC fails later, or the stage leaves the GPU, software goes on with the packet in hand;
/// frames that depend on earlier ones are then missing until the next keyframe. The reason is
/// logged and stands in the feed's status. With `decoder: nvdec` all of these are a FeedError.
/// (NvdecTrial decides, the Decoder carries it out.)
///
/// Damage is counted (see PacketAccount) and logged once, never thrown: the decoder gets every
/// packet, and a frame whose damage it could conceal is delivered.
///
/// One thread calls. Each call may take long, and longer than any deadline on a GPU that hangs;
/// FFmpeg's own threads only take buffers.
class Decoder {
 public:
  /// `live`: few frame threads (codec_threads). `options` is what the demuxer left over; what the
  /// decoder consumes is removed from it. Throws FeedError(kConfiguration) when this build of
  /// FFmpeg has no such decoder, input.decoders does not allow it, or it refuses the stream.
  Decoder(const AVCodecParameters& parameters, AVRational time_base, AVRational frame_rate,
          Dictionary& options, const InputOptions& input, bool live, const SourceContext& context,
          FrameImporter& importer);
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  /// FFmpeg's name of the decoder, "h264", or "h264_nvdec" on a GPU. Changes when software takes
  /// over.
  std::string name() const;
  /// FFmpeg's context of the open decoder, to look at.
  const AVCodecContext& context() const { return *context_; }

  /// Gives the decoder a stamped packet, or null: no more will come before reset(). Only after
  /// receive() has returned kNeedInput. Throws FeedError.
  void send(AVPacket* packet);

  enum class Flow { kReady, kNeedInput, kEndOfStream };
  /// The next frame in display order, with its pts from the timeline. Throws FeedError.
  Flow receive(InputFrame& frame);

  /// Forgets what is inside: the next packet does not continue the last ones.
  void reset();

 private:
  static int get_buffer(AVCodecContext* context, AVFrame* frame, int flags);
  static AVPixelFormat choose_format(AVCodecContext* context, const AVPixelFormat* offered);
  void hold_exception() noexcept;

  bool open_on_gpu(Dictionary& options);
  void open_in_software(Dictionary& options);
  int open(const AVCodec& codec, Dictionary& options);
  void silence();
  void change_to_software(FeedFault fault, const std::string& why);

  int send_to_ffmpeg(AVPacket* packet);
  int receive_from_ffmpeg();
  PacketAccount::Expect expectation_of(const AVPacket& packet) const;
  bool apply_refusal(int result);
  bool replay_packet();
  void failed(int error);
  bool deliver(InputFrame& frame);

  const CodecParametersPtr parameters_;
  const AVRational time_base_;
  const AVRational frame_rate_;
  const bool live_;
  const Skip skip_;
  const InputAccess access_;
  const std::int64_t coded_pixels_;
  FramePool& pool_;
  FeedStats& stats_;
  Timeline& timeline_;
  FrameImporter& importer_;
  const Dictionary options_;  // for opening once more

  NvdecTrial nvdec_;
  PacketAccount account_;
  std::chrono::nanoseconds working_{0};  // time spent on what has not become a frame yet
  std::mutex exception_mutex_;
  std::exception_ptr exception_;  // the first that a callback of FFmpeg's had to hold back

  FramePtr frame_;
  CodecContextPtr context_;  // last: its threads use the members above until it is freed
};

}  // namespace framelane
