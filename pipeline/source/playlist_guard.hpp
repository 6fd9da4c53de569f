#pragma once

extern "C" {
#include <libavformat/avformat.h>
}

namespace framelane {

/// FFmpeg's HLS demuxer reads the playlist of a stream again and again. If it has become a playlist
/// of variants meanwhile, the demuxer makes a stream without a context of each, and crashes when it
/// reads the next packet. This has every playlist but the one that `context` is opened with refused
/// (AVERROR_INVALIDDATA) if it lists variants or is larger than any playlist should be. To be
/// called before avformat_open_input(), with the same options.
void guard_playlists(AVFormatContext& context, AVDictionary** options);

}  // namespace framelane
