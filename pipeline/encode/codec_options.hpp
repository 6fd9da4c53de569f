#pragma once

extern "C" {
#include <libavcodec/avcodec.h>
}

#include <optional>
#include <string>

#include "pipeline/encode/encode_options.hpp"

namespace framelane {

/// Sets the options of an encoder, video or audio, that is not open yet. Says which option it does
/// not have, or which value it rejects; nothing if it takes them all.
std::optional<std::string> apply_options(AVCodecContext& context, const CodecCandidate& candidate);

/// True if the codec may fail to open because the machine lacks a device for it. FFmpeg does not
/// say so of OpenMAX's encoders.
bool needs_hardware(const AVCodec& codec);

}  // namespace framelane
