#pragma once

extern "C" {
#include <libavutil/frame.h>
#include <libswscale/swscale.h>
}

#include <memory>
#include <optional>

#include "pipeline/base/color_override.hpp"
#include "pipeline/frames/frame_pool.hpp"
#include "pipeline/frames/input_frame.hpp"
#include "pipeline/measure/feed_stats.hpp"

namespace framelane {

/// Makes InputFrames of AVFrames. By reference where the pixels lie in the pool in a layout of
/// ours, or in a GPU's memory, where NVDEC leaves them as NV12; otherwise by one counted copy into
/// it: kAlignment for a frame stored bottom up, kDecoder for one in other memory, kFormat through
/// swscale for a format that is none of our layouts. Resolves the colour once per change and logs
/// it. One thread.
class FrameImporter {
 public:
  FrameImporter(FramePool& pool, FeedStats& stats, const ColorOverride& color)
      : pool_(pool), stats_(stats), color_override_(color) {}

  /// Fills all of an InputFrame but its times. Throws FeedError: kMemory, kConfiguration (a colour
  /// matrix or pixel format that framelane cannot treat).
  InputFrame import(const AVFrame& frame);

 private:
  struct SwsDeleter {
    void operator()(SwsContext* context) const { sws_freeContext(context); }
  };
  // What a frame says about its form; a change is resolved and logged anew.
  struct Form {
    AVPixelFormat format = AV_PIX_FMT_NONE;  // of the pixels, wherever they are
    FrameMemory memory = FrameMemory::kHost;
    int width = 0;
    int height = 0;
    AVColorSpace space = AVCOL_SPC_UNSPECIFIED;
    AVColorRange range = AVCOL_RANGE_UNSPECIFIED;
    AVChromaLocation location = AVCHROMA_LOC_UNSPECIFIED;
    AVColorPrimaries primaries = AVCOL_PRI_UNSPECIFIED;
    AVColorTransferCharacteristic transfer = AVCOL_TRC_UNSPECIFIED;
    friend bool operator==(const Form&, const Form&) = default;
  };

  void adopt(const Form& form);
  void warn_of_siting() const;
  void make_scaler();
  void refer_to_surface(const AVFrame& frame, InputFrame& to) const;
  void copy(const AVFrame& frame, InputFrame& to);
  void scale(const AVFrame& frame, InputFrame& to);

  FramePool& pool_;
  FeedStats& stats_;
  const ColorOverride color_override_;
  std::optional<Form> form_;
  PixelFormat layout_ = PixelFormat::kI420;  // what frames of this form come out as
  ColorSpec color_;
  std::unique_ptr<SwsContext, SwsDeleter> scaler_;  // null when the form is one of our layouts
  bool scaling_logged_ = false;
};

}  // namespace framelane
