#pragma once

extern "C" {
#include <libavformat/avformat.h>
}

#include <string>

#include "pipeline/output/output_options.hpp"
#include "pipeline/packets/media.hpp"

namespace framelane {

enum class OutputKind {
  kNull,      ///< discards
  kFile,      ///< one regular file at a time: NAME.part while written, then NAME
  kPlaylist,  ///< FFmpeg's hls muxer, which names and removes its own segments
  kStream,    ///< a network peer, a pipe, a device, or a muxer that opens files by
              ///< itself
};

/// Where an output goes and in which container.
struct Container {
  OutputKind kind = OutputKind::kNull;
  const AVOutputFormat* muxer = nullptr;  ///< null for kNull, and where none is known
  std::string url;                        ///< for FFmpeg: a path without "file:", "pipe:1" for "-"
  bool local = false;                     ///< `url` is a path
  bool fmp4_segments = false;             ///< kPlaylist with hls_segment_type fmp4
};

/// Read off the options alone. Never throws for wrong ones: check_container() does.
Container container_of(const OutputOptions& options);

/// The same after a look at the path: a device or a FIFO is a stream. Blocks as long as its file
/// system does.
Container container_on_disk(const OutputOptions& options);

/// Throws FeedError(kConfiguration) for an empty url, a muxer that does not
/// exist or cannot be guessed, and for `segment` where there is no file to cut.
void check_container(const OutputOptions& options, const Container& container);

/// Throws FeedError(kConfiguration) when the container cannot hold this video,
/// or holds it only as private data that no player understands.
void check_video(const OutputOptions& options, const Container& container, AVCodecID codec);

/// Whether the container really holds this audio: a checked table, since FFmpeg
/// writes nearly anything into MPEG-TS without complaint.
bool holds_audio(const Container& container, AVCodecID codec);

}  // namespace framelane
