#include "pipeline/source/direct_buffer.hpp"

extern "C" {
#include <libavutil/imgutils.h>
}

#include <array>
#include <cstddef>

#include "pipeline/av/av_color.hpp"
#include "pipeline/av/buffer_ref.hpp"

namespace framelane {
namespace {

/// Behind every plane: decoders, and those who read their frames, run over its end by up to this
/// many bytes.
constexpr std::size_t kPlanePadding = 128;

}  // namespace

int get_direct_buffer(AVCodecContext& context, AVFrame& frame, int flags, FramePool& pool) {
  const auto format = static_cast<AVPixelFormat>(frame.format);
  const bool direct = (context.codec->capabilities & AV_CODEC_CAP_DR1) != 0;
  if (!direct || !layout_of(format)) return avcodec_default_get_buffer2(&context, &frame, flags);

  int width = frame.width;
  int height = frame.height;
  std::array<int, AV_NUM_DATA_POINTERS> alignment{};
  avcodec_align_dimensions2(&context, &width, &height, alignment.data());
  // The width grows until the rows of every plane are aligned. Aligning each plane by itself would
  // not do: decoders rely on chroma rows being a fixed fraction of luma rows.
  bool aligned = false;
  while (!aligned) {
    if (const int error = av_image_fill_linesizes(frame.linesize, format, width); error < 0) {
      return error;
    }
    aligned = true;
    for (int plane = 0; plane < 4; ++plane) {
      aligned = aligned && frame.linesize[plane] % FramePool::kPitchAlignment == 0;
    }
    width += width & -width;
  }
  std::array<std::ptrdiff_t, 4> pitches{};
  for (int plane = 0; plane < 4; ++plane) pitches[plane] = frame.linesize[plane];
  std::array<std::size_t, 4> bytes{};
  if (const int error = av_image_fill_plane_sizes(bytes.data(), format, height, pitches.data());
      error < 0) {
    return error;
  }
  std::array<std::size_t, 4> offsets{};
  std::size_t total = 0;
  for (int plane = 0; plane < 4 && bytes[plane] > 0; ++plane) {
    offsets[plane] = total;
    total += (bytes[plane] + kPlanePadding + FramePool::kPitchAlignment - 1) /
             FramePool::kPitchAlignment * FramePool::kPitchAlignment;
  }
  frame.buf[0] = pool.get(total).release();
  for (int plane = 0; plane < 4 && bytes[plane] > 0; ++plane) {
    frame.data[plane] = frame.buf[0]->data + offsets[plane];
  }
  frame.extended_data = frame.data;
  return 0;
}

}  // namespace framelane
