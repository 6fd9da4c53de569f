#pragma once

#include <functional>
#include <string>

extern "C" {
#include <libavcodec/avcodec.h>
}

#include "pipeline/av/buffer_ref.hpp"
#include "pipeline/frames/frame_pool.hpp"

namespace framelane {

// Frames that stay in a GPU's memory on their way to an encoder. FFmpeg allocates them, in the
// layout that NVENC reads: the planes of a frame one after the other, and V before U.

/// Makes an AVHWDeviceContext of the feed's GPU (Stage::encode_context). Null: it cannot, and the
/// reason is in `why`.
using GpuContext = std::function<BufferRef(std::string& why)>;

/// An AVHWFramesContext: what an encoder has to know of the frames that it will get, and the pool
/// that they come from. Null, with the reason in `why`, if the encoder or FFmpeg takes no such
/// frames.
BufferRef make_gpu_frames(const AVCodec& codec, const GpuContext& context, AVPixelFormat format,
                          int width, int height, std::string& why);

/// A frame from the pool. May wait for the GPU. Throws FeedError(kMemory).
PooledImage allocate_gpu_image(const BufferRef& frames, PixelFormat format);

}  // namespace framelane
