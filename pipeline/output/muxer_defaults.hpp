#pragma once

extern "C" {
#include <libavcodec/avcodec.h>
}

#include "pipeline/av/dictionary.hpp"
#include "pipeline/output/container.hpp"

namespace framelane {

/// Adds to the user's options what framelane wants of the muxer: files that can be read after a
/// kill, and segments that a playlist can list.
void set_muxer_defaults(Dictionary& options, const Container& container,
                        const AVCodecParameters& video);

}  // namespace framelane
