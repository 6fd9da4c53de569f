#pragma once

extern "C" {
#include <libavformat/avformat.h>
}

#include <string>

#include "pipeline/source/input_options.hpp"

namespace framelane {

/// What FFmpeg is to open. Devices are demuxers to it: "lavfi:GRAPH" becomes the demuxer lavfi with
/// the graph as its URL.
struct InputTarget {
  std::string url;
  std::string format;  ///< empty: probed
};

InputTarget target_of(const InputOptions& input);

bool is_v4l2(const InputTarget& target);

/// The demuxer, null if it is to be probed. Reads a very small file, which FFmpeg may probe wrong.
/// Throws FeedError if FFmpeg has no demuxer of that name.
const AVInputFormat* find_demuxer(const InputTarget& target);

}  // namespace framelane
