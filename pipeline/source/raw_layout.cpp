#include "pipeline/source/raw_layout.hpp"

extern "C" {
#include <libavutil/common.h>
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
}

#include <algorithm>
#include <string>

#include "pipeline/base/failure.hpp"

namespace framelane {
namespace {

FeedError wrong(const std::string& what) { return FeedError(FeedFault::kConfiguration, what); }

/// Format and size, and the pitches of rows without padding.
RawLayout unpadded(const RawVideoOptions& raw) {
  RawLayout layout{
      .format = av_get_pix_fmt(raw.pixel_format.c_str()), .width = raw.width, .height = raw.height};
  const AVPixFmtDescriptor* descriptor = av_pix_fmt_desc_get(layout.format);
  if (descriptor == nullptr) {
    throw wrong("FFmpeg has no pixel format named " + raw.pixel_format +
                "; correct input.pixel_format");
  }
  constexpr auto kUnfit = AV_PIX_FMT_FLAG_PAL | AV_PIX_FMT_FLAG_HWACCEL | AV_PIX_FMT_FLAG_BITSTREAM;
  if ((descriptor->flags & kUnfit) != 0) {
    throw wrong("raw video of the pixel format " + raw.pixel_format +
                " cannot be read: its planes do not hold whole samples; convert it, and set "
                "input.pixel_format to what it has become");
  }
  if (av_image_check_size(static_cast<unsigned>(std::max(raw.width, 0)),
                          static_cast<unsigned>(std::max(raw.height, 0)), 0, nullptr) < 0 ||
      av_image_fill_linesizes(layout.pitches.data(), layout.format, raw.width) < 0) {
    throw wrong(
        "frames of " + std::to_string(raw.width) + "x" + std::to_string(raw.height) + " " +
        raw.pixel_format +
        " cannot be read: they are empty, or more than FFmpeg's encoders take (16255x16255 or the "
        "like); correct input.size and input.pixel_format");
  }
  return layout;
}

int round_up_to(int value, int step) { return (value + step - 1) / step * step; }

/// Puts planes of these heights one after the other.
void stack(RawLayout& layout, const std::array<int, 4>& heights) {
  for (std::size_t plane = 0; plane < layout.pitches.size(); ++plane) {
    if (layout.pitches[plane] == 0) continue;
    layout.offsets[plane] = layout.bytes;
    layout.bytes +=
        static_cast<std::size_t>(layout.pitches[plane]) * static_cast<std::size_t>(heights[plane]);
  }
}

}  // namespace

RawLayout packed_layout(const RawVideoOptions& raw) {
  RawLayout layout = unpadded(raw);
  const AVPixFmtDescriptor* descriptor = av_pix_fmt_desc_get(layout.format);
  const int packed = layout.pitches[0];
  if (raw.pitch != 0 && raw.pitch < packed) {
    throw wrong("input.pitch is " + std::to_string(raw.pitch) + " bytes, less than the " +
                std::to_string(packed) + " of one row");
  }
  if (raw.pitch != 0 && raw.pitch != packed) {
    // The other planes have pitches in proportion: half of it where rows have half the samples.
    const bool pairs = (descriptor->flags & AV_PIX_FMT_FLAG_PLANAR) != 0 && layout.pitches[2] == 0;
    for (std::size_t plane = 1; plane < layout.pitches.size(); ++plane) {
      if (layout.pitches[plane] == 0) continue;
      const int shift = plane < 3 ? descriptor->log2_chroma_w : 0;
      layout.pitches[plane] = AV_CEIL_RSHIFT(raw.pitch, shift) * (pairs ? 2 : 1);
    }
    layout.pitches[0] = raw.pitch;
  }
  std::array<std::ptrdiff_t, 4> pitches{};
  std::array<std::size_t, 4> bytes{};
  std::ranges::copy(layout.pitches, pitches.begin());
  if (av_image_fill_plane_sizes(bytes.data(), layout.format, raw.height, pitches.data()) < 0) {
    throw wrong("frames of this size and pitch are too large; correct input.size and input.pitch");
  }
  for (std::size_t plane = 0; plane < bytes.size(); ++plane) {
    layout.offsets[plane] = layout.bytes;
    layout.bytes += bytes[plane];
  }
  return layout;
}

bool gstreamer_lays_out(AVPixelFormat format) {
  const AVPixFmtDescriptor* descriptor = av_pix_fmt_desc_get(format);
  if (descriptor == nullptr || descriptor->comp[0].depth != 8) return false;
  constexpr auto kUnfit = AV_PIX_FMT_FLAG_PAL | AV_PIX_FMT_FLAG_HWACCEL | AV_PIX_FMT_FLAG_BITSTREAM;
  if ((descriptor->flags & kUnfit) != 0) return false;
  if ((descriptor->flags & AV_PIX_FMT_FLAG_PLANAR) == 0) return true;  // packed, or gray
  if ((descriptor->flags & (AV_PIX_FMT_FLAG_RGB | AV_PIX_FMT_FLAG_ALPHA)) != 0) return false;
  const int width = descriptor->log2_chroma_w;
  const int height = descriptor->log2_chroma_h;
  const bool pairs = av_pix_fmt_count_planes(format) == 2;
  return (width == 1 && height == 1) || (!pairs && height == 0 && (width == 0 || width == 1));
}

RawLayout gstreamer_layout(const RawVideoOptions& raw) {
  RawLayout layout = unpadded(raw);
  if (!gstreamer_lays_out(layout.format)) {
    throw wrong("framelane does not know how GStreamer lays out frames of the pixel format " +
                raw.pixel_format +
                "; convert them, for example with videoconvert, and correct "
                "input.pixel_format");
  }
  const AVPixFmtDescriptor* descriptor = av_pix_fmt_desc_get(layout.format);
  const int planes = av_pix_fmt_count_planes(layout.format);
  const int luma = round_up_to(layout.pitches[0], 4);
  int height = raw.height;
  int chroma_height = raw.height;
  layout.pitches[0] = luma;
  if (planes == 2) {  // 4:2:0: NV12, NV21
    layout.pitches[1] = luma;
  } else if (planes == 3) {
    // 4:2:0 pads half of the even width; 4:2:2 halves a width that was padded to 8.
    const int half = descriptor->log2_chroma_h == 1 ? round_up_to(round_up_to(raw.width, 2) / 2, 4)
                                                    : round_up_to(raw.width, 8) / 2;
    layout.pitches[1] = layout.pitches[2] = descriptor->log2_chroma_w == 1 ? half : luma;
  }
  if (planes > 1 && descriptor->log2_chroma_h == 1) {
    height = round_up_to(raw.height, 2);
    chroma_height = height / 2;
  }
  stack(layout, {height, chroma_height, chroma_height, height});
  return layout;
}

void refuse_options(const InputOptions& input) {
  for (const AvOption& option : input.options) {
    if (option.inherited) continue;
    throw wrong("nothing takes the option " + option.key +
                ": raw video is not read through FFmpeg; remove input.options." + option.key);
  }
}

void refer_to_raw(const RawLayout& layout, std::uint8_t* data, AVFrame& frame) {
  frame.format = layout.format;
  frame.width = layout.width;
  frame.height = layout.height;
  for (std::size_t plane = 0; plane < layout.pitches.size(); ++plane) {
    frame.linesize[plane] = layout.pitches[plane];
    frame.data[plane] = layout.pitches[plane] != 0 ? data + layout.offsets[plane] : nullptr;
  }
}

}  // namespace framelane
