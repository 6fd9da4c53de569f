#pragma once

#include <string>

#include "pipeline/packets/media.hpp"

namespace framelane {

/// A stream's name in CODECS of a master playlist (RFC 6381, 3.3; ISO/IEC 14496-15, annex E), such
/// as "avc1.64001f". The parameters come from the codec's headers: from the extradata, or, where
/// that is empty, from `keyframe`, which may be null. Empty if the codec has no such name, or if
/// its headers are not found.
std::string codec_name(const AVCodecParameters& stream, const AVPacket* keyframe);

}  // namespace framelane
