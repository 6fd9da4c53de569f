#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "pipeline/encode/encode_options.hpp"
#include "pipeline/encode/frame_format.hpp"
#include "pipeline/encode/gpu_frames.hpp"
#include "pipeline/encode/nvenc.hpp"
#include "pipeline/packets/media.hpp"
#include "pipeline/stage/stage.hpp"

namespace framelane {

/// One encode's codec and format for one format of the source, and the encoder, opened. The source
/// thread makes it, since it must know what the encoder takes before it can convert. The encode
/// thread uses it.
struct EncodePlan {
  EncodeOptions options;              ///< what it was made by
  CodecCandidate codec;               ///< the candidate that was available
  AVRational source_time_base{0, 1};  ///< of the frames' pts
  FrameFormat target;                 ///< what the encoder takes; its time base is the encoder's
  std::optional<Scaling> scaling{};   ///< EncodeTarget::scaling
  BufferRef frames;                   ///< make_gpu_frames; null: the target is in host memory
  int threads = 0;                    ///< as codec_threads says
  bool live = false;                  ///< the source sends a frame as each is due
  MediaFormatRef media;               ///< of the encode's packets, audio included
  EncoderPtr opened;                  ///< the encode thread takes it; null from then on
  std::string gpu;                    ///< where NVENC runs (gpu_of); empty: another encoder
  bool on_feeds_gpu = false;          ///< that is EncodeRequest::device
  /// An earlier candidate was NVENC, and the driver allowed no further session.
  bool lacked_session = false;
  /// Set by the encode thread when the next frame needs another plan: the encoder is closed, and it
  /// has no session to open again, or an earlier candidate may have one by now.
  std::atomic<bool> outdated{false};
};

/// True if the encoder runs on a GPU that is lost, or takes frames on one that the feed has left.
/// Any thread.
bool has_left_gpu(const EncodePlan& plan, Stage& stage);

/// What make_encode_plan has to know.
struct EncodeRequest {
  const EncodeOptions& options;
  FrameFormat source;
  std::string_view feed{};  ///< for the log
  std::string device{};     ///< the feed's, for choose_gpu
  bool live = false;        ///< few threads (codec_threads)
  bool rendition = false;   ///< its keyframes have to be those of others: takes_keyframe_requests
  const StreamFormat* audio = nullptr;  ///< of the packets beside the video; null: none
  std::optional<std::chrono::microseconds> lost_until{};  ///< MediaFormat::lost_until
  /// Of `device`, for encoders that take frames on it. Empty: they take frames in host memory.
  GpuContext gpu_context{};
  /// Called before each candidate is opened, which may take long.
  std::function<void(const CodecCandidate&)> opening{};
};

/// Chooses the first available codec, the target format and colour (choose_target), and opens the
/// encoder. A candidate is passed over if this FFmpeg has no such encoder, if its hardware does
/// not open, or if it cannot be a rendition and has to be one; the log then says why. Throws
/// FeedError if no candidate is left: kMemory if one lacked memory or a session, kDevice if its GPU
/// is lost, else kConfiguration. Throws FeedError(kConfiguration) if an option is rejected, or if
/// the encoder takes no format to which the source can be converted, and FeedError(kEncoder) if the
/// encoder does not open for another reason.
std::shared_ptr<EncodePlan> make_encode_plan(const EncodeRequest& request);

/// Opens a plan's encoder again. Null if NVENC's driver allows no further session. Throws
/// FeedError. What the encoder rejects is never kConfiguration here, because it has opened with the
/// same options before.
EncoderPtr reopen_encoder(const EncodePlan& plan);

/// False if the encoder has done with a frame when avcodec_send_frame returns. Most hold some:
/// those with frame threads one for each, others as many as they look ahead.
bool may_hold_frames(const CodecCandidate& candidate);

}  // namespace framelane
