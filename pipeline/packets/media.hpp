#pragma once

#include <memory>
#include <optional>

#include "pipeline/av/av_ptr.hpp"

namespace framelane {

enum class StreamKind { kVideo, kAudio };

/// True for a video packet at which decoding can start. Audio has none.
inline bool is_keyframe(const AVPacket& packet, StreamKind stream) {
  return stream == StreamKind::kVideo && (packet.flags & AV_PKT_FLAG_KEY) != 0;
}

/// One elementary stream as a muxer has to know it.
struct StreamFormat {
  CodecParametersPtr parameters;
  AVRational time_base{0, 1};
  AVRational frame_rate{0, 1};  ///< video; 0/1 when unknown
};

/// What an encode delivers. Immutable; packets that share one MediaFormat belong to one file. A
/// different object means that the format has changed and the output must start anew.
struct MediaFormat {
  StreamFormat video;
  std::optional<StreamFormat> audio;
};
using MediaFormatRef = std::shared_ptr<const MediaFormat>;

/// A guessed rate, or 0/1 when it is none: of a camera that sends a picture every few seconds
/// FFmpeg takes the clock that timestamps count in (1000 Hz or more) for its rate.
AVRational plausible_rate(AVRational guess);

/// Same codec, size, extradata, colour and time base: a decoder goes on without being told
/// anything.
bool same_stream(const StreamFormat& a, const StreamFormat& b);
/// The same of every stream, so that packets can go into the same file.
bool same_format(const MediaFormat& a, const MediaFormat& b);

}  // namespace framelane
