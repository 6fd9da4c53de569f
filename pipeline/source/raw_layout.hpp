#pragma once

extern "C" {
#include <libavutil/frame.h>
#include <libavutil/pixfmt.h>
}

#include <array>
#include <cstddef>
#include <cstdint>

#include "pipeline/source/input_options.hpp"

namespace framelane {

/// Where the planes of a raw frame lie in its bytes.
struct RawLayout {
  AVPixelFormat format = AV_PIX_FMT_NONE;
  int width = 0;
  int height = 0;
  std::array<int, 4> pitches{};  ///< bytes from one row to the next; 0: there is no such plane
  std::array<std::size_t, 4> offsets{};
  std::size_t bytes = 0;  ///< of a frame
};

/// Planes one after the other, with rows of `pitch` bytes or, if that is 0, without padding. Throws
/// FeedError(kConfiguration) if there can be no such frames.
RawLayout packed_layout(const RawVideoOptions& raw);

/// GStreamer's default (gst_video_info_set_format in gst-plugins-base): rows padded to 4 bytes,
/// the heights of 4:2:0 formats to 2 rows. Throws FeedError(kConfiguration) likewise, and if
/// !gstreamer_lays_out.
RawLayout gstreamer_layout(const RawVideoOptions& raw);
/// True for the formats of which gstreamer_layout knows the layout.
bool gstreamer_lays_out(AVPixelFormat format);

/// Throws FeedError(kConfiguration) if the input has options of its own: nothing takes them,
/// because raw video is not read through FFmpeg.
void refuse_options(const InputOptions& input);

/// Makes `frame` refer to the frame at `data`: format, size, planes. Sets no owner.
void refer_to_raw(const RawLayout& layout, std::uint8_t* data, AVFrame& frame);

}  // namespace framelane
