#pragma once

#include <memory>
#include <optional>
#include <span>

#include "kernels/picture_mask.hpp"
#include "pipeline/frames/frame_pool.hpp"
#include "pipeline/frames/input_frame.hpp"
#include "pipeline/measure/feed_stats.hpp"
#include "pipeline/stage/stage.hpp"

namespace framelane {

/// Covers the parts of decoded frames that a feed's `mask` names, before anything else sees them.
/// The source thread alone calls.
class FrameMasker {
 public:
  /// All outlive this. Without shapes nothing is covered. `stage` covers frames that are on its
  /// GPU.
  FrameMasker(std::span<const MaskShape> shapes, Stage& stage, FeedStats& stats)
      : shapes_(shapes), stage_(stage), stats_(stats) {}

  /// Covers the frame in place if nobody else has its memory; otherwise it becomes a copy, which is
  /// counted. A decoder's reference pictures and the memory of other processes stay as they are.
  /// A frame on a GPU is covered in place: it is NVDEC's picture as it was made for the output, and
  /// not the one that NVDEC refers to. False: the GPU that has the frame is lost. Throws FeedError
  /// if the frame cannot be covered. In both cases it must not be used.
  [[nodiscard]] bool apply(InputFrame& frame);

 private:
  struct Format {
    PixelFormat layout;
    PictureSize size;
    ColorSpec color;
    friend bool operator==(const Format&, const Format&) = default;
  };

  void prepare(const InputFrame& frame);

  const std::span<const MaskShape> shapes_;
  Stage& stage_;
  FeedStats& stats_;
  FramePool copies_;
  std::optional<Format> format_;  // that `mask_` is for
  std::shared_ptr<const PictureMask> mask_;
};

}  // namespace framelane
