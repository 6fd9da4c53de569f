#pragma once

#include <memory>
#include <optional>
#include <span>

#include "kernels/picture_mask.hpp"
#include "pipeline/frames/frame_pool.hpp"
#include "pipeline/frames/input_frame.hpp"
#include "pipeline/measure/feed_stats.hpp"

namespace framelane {

/// Covers the parts of decoded frames that a feed's `mask` names, before anything else sees them.
/// The source thread alone calls.
class FrameMasker {
 public:
  /// Both outlive this. Without shapes nothing is covered.
  FrameMasker(std::span<const MaskShape> shapes, FeedStats& stats)
      : shapes_(shapes), stats_(stats) {}

  /// Covers the frame in place if nobody else has its memory; otherwise it becomes a copy, which is
  /// counted. A decoder's reference pictures and the memory of other processes stay as they are.
  /// Throws FeedError if the frame cannot be covered: it must not be used then.
  void apply(InputFrame& frame);

 private:
  struct Format {
    PixelFormat layout;
    PictureSize size;
    ColorSpec color;
    friend bool operator==(const Format&, const Format&) = default;
  };

  const std::span<const MaskShape> shapes_;
  FeedStats& stats_;
  FramePool copies_;
  std::optional<Format> format_;  // that `mask_` is for
  std::unique_ptr<PictureMask> mask_;
};

}  // namespace framelane
