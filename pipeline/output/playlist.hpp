#pragma once

#include "pipeline/output/container.hpp"
#include "pipeline/output/muxer.hpp"
#include "pipeline/output/output_options.hpp"

namespace framelane {

/// Prepares the folder of an HLS playlist before its muxer is opened: creates it, and removes
/// segments of earlier runs that the playlist no longer lists, unless the options keep them or name
/// segments in their own way. Returns what to open: the playlist that is there is continued;
/// without one, segments begin at a number that no viewer has in a cache. `anew`: an existing
/// playlist is removed first, or is an error, as options.existing says. Throws IoError, DiskFull.
/// Blocks as long as the file system does.
MuxerTarget prepare_playlist(const OutputOptions& options, const Container& container, bool anew);

}  // namespace framelane
