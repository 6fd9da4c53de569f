#pragma once

extern "C" {
#include <libavcodec/avcodec.h>
}

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "pipeline/av/av_ptr.hpp"
#include "pipeline/av/buffer_ref.hpp"
#include "pipeline/base/failure.hpp"
#include "pipeline/measure/feed_stats.hpp"
#include "pipeline/source/input_options.hpp"
#include "pipeline/stage/stage.hpp"

namespace framelane {

/// FFmpeg's own decoder of a codec, if it can leave the work to NVDEC; null: it cannot. (The
/// decoders named *_cuvid are NVIDIA's: they report errors differently and set fewer properties of
/// the frames.)
const AVCodec* nvdec_of(AVCodecID id);
/// What framelane calls that decoder when it works on a GPU: "h264_nvdec".
std::string nvdec_name(const AVCodec& codec);

/// Whether NVDEC decodes a stream, why it does not, and which packets software has to decode again
/// when it takes over. It decides; the Decoder opens, closes and calls FFmpeg's decoders.
///
/// The trial starts with begin(). While it is active the open decoder is NVDEC's. Until the first
/// frame has come from it (it is unproven) every packet is held, so that a stream that NVDEC fails
/// at once loses nothing; later only the last packet is. leave() ends the trial for good.
///
/// The source thread alone calls.
class NvdecTrial {
 public:
  /// `stage` null: the feed does not run on a GPU. `ring`: how many frames the feed holds at once.
  NvdecTrial(InputOptions::DecoderKind decoder, Stage* stage, int ring, FeedStats& stats);

  /// The decoder that is to be opened, on device(). Null when the configuration does not ask for
  /// NVDEC, or when it cannot be had: the trial has been left then. Throws as leave() does.
  const AVCodec* begin(AVCodecID id);
  /// True if the open decoder is NVDEC's.
  bool active() const { return static_cast<bool>(device_); }
  /// True once NVDEC has returned a frame.
  bool proven() const { return proven_; }
  /// The GPU, for AVCodecContext::hw_device_ctx; null unless active.
  const BufferRef& device() const { return device_; }

  /// Answers FFmpeg's get_format, which is asked when the stream's format is known and when it
  /// changes: AV_PIX_FMT_CUDA, with as many surfaces as the feed needs, or AV_PIX_FMT_NONE, and
  /// then refusal() says why.
  AVPixelFormat choose_format(AVCodecContext& context, const AVPixelFormat* offered);
  /// Why NVDEC does not take the packet that was sent last; empty: it has not refused.
  const std::string& refusal() const { return refusal_; }
  /// Returns refusal() and clears it.
  std::string take_refusal() { return std::exchange(refusal_, {}); }
  /// True the first time it is called after a refusal: what NVDEC decoded before, in another
  /// format, has to be taken out first.
  bool begin_emptying();

  /// Holds the packet `number`, or null for the end of the stream, which is about to be sent.
  void remember_for_replay(const AVPacket* packet, std::int64_t number);
  /// The packet that was sent last is damaged: it need not be replayed, software would fail too.
  void forget_damaged();
  /// True while the stage works on the GPU and takes frames from there.
  bool stage_takes_frames() { return stage_->takes_device_frames(); }
  /// A frame has come while active. Ends the trial if the frame is in host memory. True if the
  /// decoder's name and messages have to be set anew. Throws as leave() does.
  bool frame_came(const AVFrame& frame, const AVCodec& codec);
  /// Looks at an error that FFmpeg returned, and counts it if it is NVDEC's own. True if software
  /// has to go on.
  bool must_end(int error);

  /// Ends the trial: software decodes from here on. Sets the reason in the feed's status, and logs
  /// it if it is a new one; it is empty where a GPU is not expected. With `decoder: nvdec` throws
  /// FeedError(fault) instead.
  void leave(FeedFault fault, const std::string& why);

  /// A packet that software has to decode again.
  struct ReplayPacket {
    PacketPtr packet;  ///< null: the end of the stream
    std::int64_t number = 0;
  };
  /// After leave(): the packets that are held are to be replayed. Returns the number of the first;
  /// nothing when there is none.
  std::optional<std::int64_t> begin_replay();
  /// The next packet to replay; nothing when all have been taken.
  std::optional<ReplayPacket> next_replay();
  /// Forgets the packets that are held or to be replayed.
  void forget_packets();

 private:
  std::string prepare_surfaces(AVCodecContext& context) const;

  const InputOptions::DecoderKind decoder_;
  Stage* const stage_;
  const int ring_;
  FeedStats& stats_;

  BufferRef device_;  // null: not active
  std::string refusal_;
  bool emptying_ = false;
  bool proven_ = false;
  int failures_ = 0;                 // in a row, since the last frame
  std::deque<ReplayPacket> held_;    // sent, but no frame has come since
  std::deque<ReplayPacket> replay_;  // that software has yet to get
};

}  // namespace framelane
