#pragma once

extern "C" {
#include <libavformat/avformat.h>
}

namespace framelane {

// What FFmpeg's demuxer tells about an input once it is open.

bool is_playlist(const AVInputFormat& format);

/// Tells a camera, or a playlist that still grows, from a file. FFmpeg gives a playlist a duration
/// when it opens it, if nothing will be added to it: EXT-X-ENDLIST, or a static MPD. What comes
/// over HTTP and is no playlist is endless if it has neither length nor duration, or if the server
/// says that it is multipart/x-mixed-replace. An SDP file describes RTP, which comes from the
/// network.
bool is_endless(const AVFormatContext& context, bool http);

/// True for containers without times. FFmpeg makes timestamps up for them, from a rate of 25.
bool is_untimed(const AVInputFormat& format);

/// True if the container cannot be cut together from pieces that each have a clock of their own, as
/// a transport stream can.
bool times_are_continuous(const AVInputFormat& format);

}  // namespace framelane
