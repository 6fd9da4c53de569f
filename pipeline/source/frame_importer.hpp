#pragma once

extern "C" {
#include <libavutil/frame.h>
#include <libswscale/swscale.h>
}

#include <memory>
#include <optional>

#include "kernels/color_spec.hpp"
#include "kernels/pixel_format.hpp"
#include "pipeline/base/color_override.hpp"
#include "pipeline/frames/frame_pool.hpp"
#include "pipeline/frames/input_frame.hpp"
#include "pipeline/measure/feed_stats.hpp"

namespace framelane {

/// Makes InputFrames of AVFrames. An InputFrame refers to the same pixels if they lie in the pool,
/// in one of our layouts, or in a GPU's memory, where NVDEC leaves them as NV12. Otherwise the
/// pixels are copied into the pool, and the copy is counted: as kAlignment for a frame stored
/// bottom up, as kDecoder for one in other memory, as kFormat for a format that is none of our
/// layouts and goes through swscale. Resolves and logs the colour whenever the form of frames
/// changes. One thread.
class FrameImporter {
 public:
  FrameImporter(FramePool& pool, FeedStats& stats, const ColorOverride& color)
      : pool_(pool), stats_(stats), color_override_(color) {}

  /// Fills all of an InputFrame but its times. Throws FeedError: kMemory, kConfiguration (framelane
  /// cannot treat the colour matrix or pixel format), kInternal (swscale failed).
  /// `in_place`: the frame may be referred to although it is not in the pool.
  InputFrame import(const AVFrame& frame, bool in_place = false);

 private:
  struct SwsDeleter {
    void operator()(SwsContext* context) const { sws_freeContext(context); }
  };
  // What a frame says about its size, layout and colour.
  struct Form {
    AVPixelFormat format = AV_PIX_FMT_NONE;  // of the pixels, on a GPU too
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
  ConstImageView view_of(const AVFrame& frame) const;
  void copy(const AVFrame& frame, InputFrame& to);
  void scale(const AVFrame& frame, InputFrame& to);

  FramePool& pool_;
  FeedStats& stats_;
  const ColorOverride color_override_;
  std::optional<Form> form_;
  PixelFormat layout_ = PixelFormat::kI420;  // what frames of this form come out as
  ColorSpec color_;
  std::unique_ptr<SwsContext, SwsDeleter> scaler_;  // null when the format is one of our layouts
  bool scaling_logged_ = false;
};

}  // namespace framelane
