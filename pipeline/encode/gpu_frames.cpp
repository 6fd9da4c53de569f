#include "pipeline/encode/gpu_frames.hpp"

extern "C" {
#include <libavutil/frame.h>
#include <libavutil/hwcontext.h>
#include <libavutil/pixdesc.h>
}

#include <algorithm>
#include <array>
#include <cstdint>
#include <new>

#include "pipeline/av/av_error.hpp"
#include "pipeline/av/av_log_capture.hpp"
#include "pipeline/av/av_ptr.hpp"
#include "pipeline/base/failure.hpp"

namespace framelane {
namespace {

bool takes_cuda_frames(const AVCodec& codec) {
  for (int i = 0;; ++i) {
    const AVCodecHWConfig* config = avcodec_get_hw_config(&codec, i);
    if (config == nullptr) return false;
    if (config->pix_fmt == AV_PIX_FMT_CUDA) return true;
  }
}

/// What both FFmpeg's CUDA frames and NVENC can have, of the formats that framelane makes.
bool may_stay_on_gpu(AVPixelFormat format) {
  constexpr std::array kFormats{AV_PIX_FMT_NV12, AV_PIX_FMT_YUV420P, AV_PIX_FMT_YUV444P};
  return std::ranges::find(kFormats, format) != kFormats.end();
}

}  // namespace

BufferRef make_gpu_frames(const AVCodec& codec, const GpuContext& context, AVPixelFormat format,
                          int width, int height, std::string& why) {
  if (!takes_cuda_frames(codec)) {
    why = "it takes no frames on a GPU";
    return {};
  }
  if (!may_stay_on_gpu(format)) {
    why =
        std::string("FFmpeg has no frames on a GPU with the format ") + av_get_pix_fmt_name(format);
    return {};
  }
  if (format == AV_PIX_FMT_YUV420P && height % 2 != 0) {
    why = "in FFmpeg's frames on a GPU the chroma planes of an odd height overlap";
    return {};
  }
  const BufferRef device = context(why);
  if (!device) return {};
  BufferRef frames = BufferRef::adopt(av_hwframe_ctx_alloc(device.get()));
  if (!frames) {
    why = "there is no memory for its frames";
    return {};
  }
  auto& description = *reinterpret_cast<AVHWFramesContext*>(frames.get()->data);
  description.format = AV_PIX_FMT_CUDA;
  description.sw_format = format;
  description.width = width;
  description.height = height;
  const AvLogCapture log;
  if (const int error = av_hwframe_ctx_init(frames.get()); error < 0) {
    why = "FFmpeg cannot describe its frames: " + log.reason(av_error_text(error));
    return {};
  }
  return frames;
}

PooledImage allocate_gpu_image(const BufferRef& frames, PixelFormat format) {
  FramePtr frame = make_frame();
  const AvLogCapture log;
  if (const int error = av_hwframe_get_buffer(frames.get(), frame.get(), 0); error < 0) {
    const auto& description = *reinterpret_cast<const AVHWFramesContext*>(frames.get()->data);
    throw FeedError(
        FeedFault::kMemory,
        "the GPU has no memory for another frame of " + std::to_string(description.width) + "x" +
            std::to_string(description.height) + " " + av_get_pix_fmt_name(description.sw_format) +
            " for the encoder: " + log.reason(av_error_text(error)) +
            "; use a smaller ring or fewer feeds");
  }
  PooledImage result;
  result.image.format = format;
  result.image.width = frame->width;
  result.image.height = frame->height;
  for (int plane = 0; plane < info(format).plane_count; ++plane) {
    result.image.planes[plane] = {frame->data[plane], frame->linesize[plane]};
  }
  // Owns the AVFrame, because the memory of its buffers needs its AVHWFramesContext.
  const auto free_frame = [](void* owned, std::uint8_t*) {
    auto* whole = static_cast<AVFrame*>(owned);
    av_frame_free(&whole);
  };
  result.buffer = BufferRef::adopt(
      av_buffer_create(frame->data[0], frame->buf[0]->size, free_frame, frame.get(), 0));
  if (!result.buffer) throw std::bad_alloc();
  static_cast<void>(frame.release());
  return result;
}

}  // namespace framelane
