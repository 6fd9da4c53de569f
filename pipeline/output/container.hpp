#pragma once

extern "C" {
#include <libavformat/avformat.h>
}

#include <optional>
#include <string>
#include <string_view>

#include "pipeline/output/output_options.hpp"
#include "pipeline/packets/media.hpp"

namespace framelane {

enum class OutputKind {
  kNull,      ///< discards
  kFile,      ///< regular files, one at a time: NAME.part while it is written, then NAME
  kPlaylist,  ///< an HLS playlist (PlaylistWriter), and the files of its segments
  kStream,    ///< a network peer, a pipe, a device, or a muxer that opens files by itself
};

/// Where an output writes to, and in which container.
struct Container {
  OutputKind kind = OutputKind::kNull;
  const AVOutputFormat* muxer = nullptr;  ///< null for kNull, and if none is known; of segments
  std::string url;                        ///< for FFmpeg: paths without "file:", "pipe:1" for "-"
  bool local = false;                     ///< `url` is a path
  bool fmp4_segments = false;             ///< kPlaylist with hls_segment_type fmp4
};

/// What the options alone say; the disk is not looked at. Does not throw if they are wrong, see
/// check_container().
Container container_of(const OutputOptions& options);

/// The same after a look at the path: a device or a FIFO is a stream. Blocks as long as the file
/// system does.
Container container_on_disk(const OutputOptions& options);

/// Throws FeedError(kConfiguration) if the url is empty, if the muxer does not exist or cannot be
/// guessed, or if `segment` is set and there is no file to cut.
void check_container(const OutputOptions& options, const Container& container);

/// Why the container cannot hold this video, or could hold it only as what no player takes, and
/// what helps. Nothing if it holds it.
std::optional<std::string> why_no_video(const Container& container, AVCodecID codec);
/// Throws that as FeedError(kConfiguration).
void check_video(const OutputOptions& options, const Container& container, AVCodecID codec);

/// The container's name in messages: FFmpeg's, which for playlists is "hls".
std::string_view name_of(const Container& container);

/// True if players find this audio in the container. Answered from a table, because FFmpeg writes
/// nearly anything into MPEG-TS without an error.
bool holds_audio(const Container& container, AVCodecID codec);

/// FFmpeg's name of an encoder whose audio the container holds; empty if it holds none.
std::string audio_encoder_for(const Container& container);

/// Why the output goes without this audio, which its container does not hold, and what helps.
std::string why_no_audio(const OutputOptions& options, const Container& container, AVCodecID codec);

}  // namespace framelane
