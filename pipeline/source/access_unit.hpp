#pragma once

extern "C" {
#include <libavcodec/packet.h>
#include <libavformat/avformat.h>
}

namespace framelane {

/// True if a packet of H.264 or HEVC holds what comes before a picture (a delimiter, parameter
/// sets, …) and nothing of the picture itself. FFmpeg's parser gives out such a packet when a
/// source is lost, or left, right between the two. False for other codecs, and where units are not
/// separated by start codes (ITU-T H.264 and H.265, annex B).
bool is_without_picture(const AVPacket& packet, const AVCodecParameters& parameters);

}  // namespace framelane
