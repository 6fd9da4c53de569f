#pragma once

extern "C" {
#include <libavcodec/avcodec.h>
}

#include "pipeline/av/buffer_ref.hpp"
#include "pipeline/frames/frame_job.hpp"

namespace framelane {

/// Makes an empty `frame` refer to what an encode gets of a job: `output`'s picture or, if that
/// converts nothing, the input. Describes it as the encoder has been told. Copies no pixel.
/// `frames`: make_gpu_frames, if the picture is in a GPU's memory.
void refer_to(AVFrame& frame, const FrameJob& job, const JobOutput& output,
              const AVCodecContext& encoder, const BufferRef& frames);

}  // namespace framelane
