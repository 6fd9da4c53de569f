#pragma once

extern "C" {
#include <libavcodec/avcodec.h>
}

#include "pipeline/frames/frame_pool.hpp"

namespace framelane {

/// For AVCodecContext::get_buffer2: gives `frame` a buffer of the pool to decode into, with planes
/// whose rows start on FramePool::kPitchAlignment bytes. A frame that the decoder cannot place
/// there, or whose format is none of our layouts, gets memory of FFmpeg's instead. Returns FFmpeg's
/// error, or 0. Throws what the pool throws. Any thread.
int get_direct_buffer(AVCodecContext& context, AVFrame& frame, int flags, FramePool& pool);

}  // namespace framelane
