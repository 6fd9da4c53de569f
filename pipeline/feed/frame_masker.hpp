#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/picture_mask.hpp"
#include "pipeline/frames/frame_pool.hpp"
#include "pipeline/frames/input_frame.hpp"
#include "pipeline/measure/feed_stats.hpp"

namespace framelane {

/// How a feed's stage can cover a frame (FrameJob::masks).
enum class StageMasking : std::uint8_t {
  kNone,   ///< not at all: an encode gets the frame itself
  kCopy,   ///< in a copy
  kOnGpu,  ///< in its GPU's memory, where that costs the CPU nothing
};

/// Covers the parts of decoded frames that a feed's `mask` names, before anything else sees them,
/// or has the feed's stage do it. The source thread alone calls.
class FrameMasker {
 public:
  /// `stats` outlives this. Without shapes nothing is covered.
  FrameMasker(std::vector<MaskShape> shapes, FeedStats& stats)
      : shapes_(std::move(shapes)), stats_(stats) {}

  /// Frames that are given to prepare from now on are covered so. False, and nothing changes, if
  /// they are already.
  bool set_shapes(const std::vector<MaskShape>& shapes);
  /// Makes the mask for frames like this one, unless it is that of the last frame. Throws FeedError
  /// if such frames cannot be covered: they must not be used then.
  void prepare(const InputFrame& frame);
  /// The mask for frames like the last one that was given to prepare; null: nothing is covered.
  const std::shared_ptr<const PictureMask>& mask() const { return mask_; }
  /// Covers a frame that was given to prepare, or returns false: then the stage has to. A stage
  /// that masks on its GPU always has to. Otherwise the frame is covered in place if nobody else
  /// has its memory; if somebody has, a stage that masks a copy has to, or the frame becomes a copy
  /// here, which is counted. A decoder's reference pictures and the memory of other processes stay
  /// as they are. Throws FeedError if the frame cannot be covered.
  [[nodiscard]] bool apply(InputFrame& frame, StageMasking stage);

 private:
  struct Format {
    PixelFormat layout;
    PictureSize size;
    ColorSpec color;
    friend bool operator==(const Format&, const Format&) = default;
  };

  std::vector<MaskShape> shapes_;
  FeedStats& stats_;
  FramePool copies_;
  std::optional<Format> format_;  // that `mask_` is for
  std::shared_ptr<const PictureMask> mask_;
};

}  // namespace framelane
