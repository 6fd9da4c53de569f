#pragma once

extern "C" {
#include <libavutil/frame.h>
}

#include <memory>
#include <string>

#include "pipeline/packets/snapshot_tap.hpp"

namespace framelane {

/// The picture as a JPEG of this width, in square pixels; 0: as large as it is to be shown. Its
/// height follows from its shape on a screen. A picture with a side of more than 8192 pixels is
/// made smaller. The frame must be in host memory. Throws FeedError. Any thread.
std::string make_jpeg(const AVFrame& frame, int width);

/// Decodes the picture in software. A picture of more than `most_pixels` is refused. Throws
/// FeedError. Any thread.
std::shared_ptr<const AVFrame> decode_keyframe(const SnapshotTap::Keyframe& keyframe,
                                               std::int64_t most_pixels);

}  // namespace framelane
