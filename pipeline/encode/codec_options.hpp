#pragma once

extern "C" {
#include <libavcodec/avcodec.h>
}

#include <optional>
#include <string>
#include <string_view>

#include "pipeline/encode/encode_options.hpp"

namespace framelane {

/// Sets the options of an encoder, video or audio, that is not open yet. Says which option it does
/// not have, or which value it rejects; nothing if it takes them all.
std::optional<std::string> apply_options(AVCodecContext& context, const CodecCandidate& candidate);

/// True if the codec may fail to open because the machine lacks a device for it. FFmpeg does not
/// say so of OpenMAX's encoders.
bool needs_hardware(const AVCodec& codec);

/// MPEG-4 part 2 and older codecs count time in frames: their clock has too few bits for more.
bool counts_in_frames(AVCodecID id);

/// True if the encoder makes a frame a keyframe when it is asked to. libsvtav1, librav1e, libtheora
/// and FFV1, for example, do not, in any FFmpeg from 5.1 to 7.1.
bool takes_keyframe_requests(const AVCodec& codec);
/// The same of an encoder's name. True if FFmpeg has none of this name.
bool takes_keyframe_requests(const std::string& encoder);

/// Of an encoder that does not: why it cannot be one of several renditions, and what to do.
inline constexpr std::string_view kNoRendition =
    "cannot be asked for a keyframe and counts frames instead, so that its segments would not stay "
    "beside those of the other renditions; for AV1 name libaom-av1 or av1_nvenc, for H.264 libx264";

}  // namespace framelane
