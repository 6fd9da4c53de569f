#pragma once

#include "pipeline/output/container.hpp"
#include "pipeline/output/muxer.hpp"
#include "pipeline/output/output_options.hpp"

namespace framelane {

/// Makes ready the place of an HLS playlist before its muxer is opened: creates
/// the directory, removes the segments of earlier runs that no playlist names
/// any more (unless the options keep them, or name segments in a way of their
/// own), and says how to go on: append to the playlist that is there, or start
/// at a segment number that no viewer has in a cache. `anew`: what is there is
/// removed first. Throws IoError, DiskFull.
MuxerTarget prepare_playlist(const OutputOptions& options, const Container& container, bool anew);

}  // namespace framelane
