#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/conversion.hpp"
#include "pipeline/av/av_ptr.hpp"
#include "pipeline/encode/encode_options.hpp"
#include "pipeline/frames/input_frame.hpp"
#include "pipeline/packets/media.hpp"

namespace framelane {

/// What the frames of a source look like; a change of any of it makes new plans.
struct FrameFormat {
  PixelFormat layout = PixelFormat::kI420;
  int width = 0;
  int height = 0;
  ColorSpec color;
  AVRational time_base{0, 1};
  AVRational frame_rate{0, 1};  ///< 0/1 when unknown
  AVRational sample_aspect_ratio{0, 1};
  FrameMemory memory = FrameMemory::kHost;

  friend bool operator==(const FrameFormat& a, const FrameFormat& b);
};

/// What an encoder is opened for, and the encoder. Made on the source thread, which has to know
/// what the encoder takes before it can convert; used by the encode thread.
struct EncodePlan {
  CodecCandidate codec;               ///< the candidate that was available
  AVRational source_time_base{0, 1};  ///< of the frames' pts
  FrameFormat target;                 ///< what the encoder takes; its time base is the encoder's
  int threads = 0;                    ///< as codec_threads says
  MediaFormatRef media;               ///< what comes out, copied audio included
  CodecContextPtr opened;             ///< taken by the encode thread
};

struct EncodeRequest {
  const EncodeOptions& options;
  FrameFormat source;
  std::string_view feed{};              ///< for the log
  std::string device{};                 ///< the feed's, for choose_gpu
  bool live = false;                    ///< few threads (codec_threads)
  bool global_header = false;           ///< some output's container wants extradata
  const StreamFormat* audio = nullptr;  ///< goes along with the video; null: none
};

/// NVENC takes frames on any GPU, by default on the first: on `device`, if that is "cuda:N", unless
/// the candidate's options choose already.
CodecCandidate choose_gpu(CodecCandidate candidate, std::string_view device);

/// Chooses the first available codec, the target format and colour (docs/colour.md), and opens the
/// encoder. A candidate is passed over when this FFmpeg has no such encoder or its hardware does
/// not open; why is logged. Throws FeedError(kConfiguration) when no candidate is left, when an
/// option is rejected, when the encoder takes no format that the source can be converted to;
/// FeedError(kEncoder) when the encoder does not open for another reason.
std::shared_ptr<EncodePlan> make_encode_plan(const EncodeRequest& request);

/// Opens the encoder of a plan once more, after it failed. Throws FeedError, but never
/// kConfiguration for what the encoder says: it has opened with the same before.
CodecContextPtr reopen_encoder(const EncodeOptions& options, const EncodePlan& plan,
                               bool global_header);

/// The conversion from the source's frames to what the encoder takes.
Conversion conversion_between(const FrameFormat& source, const FrameFormat& target);

}  // namespace framelane
