#pragma once

extern "C" {
#include <libavutil/hwcontext.h>
}

#include <climits>
#include <span>
#include <stop_token>
#include <string>

#include "pipeline/av/buffer_ref.hpp"
#include "pipeline/stage/stage.hpp"

namespace framelane::testing {

/// A stage on a GPU that does not exist. FFmpeg's decoders get as far as asking NVDEC for surfaces.
class PaperStage : public Stage {
 public:
  /// Null in an FFmpeg that is built without CUDA.
  BufferRef decode_context(std::string&) override {
    return BufferRef::adopt(av_hwdevice_ctx_alloc(AV_HWDEVICE_TYPE_CUDA));
  }
  bool takes_device_frames() override { return frames_to_take-- > 0; }
  PlanRef prepare(std::span<const Conversion>, FrameMemory, bool, std::span<const FrameMemory>,
                  std::shared_ptr<const PictureMask>) override {
    return nullptr;
  }
  void submit(FrameJob&) override {}
  Wait wait(FrameJob&, std::stop_token, Deadline) override { return Wait::kReady; }

  int frames_to_take = INT_MAX;
};

}  // namespace framelane::testing
