#pragma once

#include <bit>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "pipeline/av/av_ptr.hpp"
#include "pipeline/measure/flight_recorder.hpp"

namespace framelane {

enum class StreamKind { kVideo, kAudio };

/// True for a video packet at which decoding can start; false for audio.
inline bool is_keyframe(const AVPacket& packet, StreamKind stream) {
  return stream == StreamKind::kVideo && (packet.flags & AV_PKT_FLAG_KEY) != 0;
}

/// Names a packet of video in traces (FlightRecorder::Record::frame). All references to the packet
/// have the name.
inline void set_frame(AVPacket& packet, std::int64_t frame) {
  packet.opaque = std::bit_cast<void*>(static_cast<std::intptr_t>(2 * frame + 1));
}
inline std::int64_t frame_of(const AVPacket& packet) {
  const auto named = std::bit_cast<std::intptr_t>(packet.opaque);
  return named == 0 ? FlightRecorder::kNoFrame : (named - 1) / 2;
}

/// What a muxer has to know of one stream.
struct StreamFormat {
  CodecParametersPtr parameters;
  AVRational time_base{0, 1};
  AVRational frame_rate{0, 1};  ///< video; 0/1 when unknown
  /// The source's sound: why it must not be decoded. Empty: it may.
  std::string decode_refusal{};
};

/// The streams that an encode delivers. Immutable. Another object means that the source or the
/// encoder began anew: an output then goes on from a keyframe, and in the same file only if both
/// are of the same_format.
struct MediaFormat {
  StreamFormat video;
  std::optional<StreamFormat> audio;
  /// On the feed's line of time: the last frame that was dropped because the encode was down. Its
  /// packets come after it.
  std::optional<std::chrono::microseconds> lost_until{};
};
using MediaFormatRef = std::shared_ptr<const MediaFormat>;

/// The guessed frame rate, or 0/1 if it cannot be one. For a camera that sends a picture every few
/// seconds FFmpeg guesses the clock of its timestamps, 1000 Hz or more.
AVRational plausible_rate(AVRational guess);

/// True if codec, size, extradata, colour and time base are the same: a decoder goes on from one to
/// the other without a restart.
bool same_stream(const StreamFormat& a, const StreamFormat& b);
/// True if same_stream holds for the video and for the audio: packets of both can go into one file.
bool same_format(const MediaFormat& a, const MediaFormat& b);
/// The audio of `media`; null if it has none, or if `media` is null.
const StreamFormat* audio_of(const MediaFormat* media);
/// True if same_stream holds, or if both are null.
bool same_audio(const StreamFormat* a, const StreamFormat* b);

}  // namespace framelane
