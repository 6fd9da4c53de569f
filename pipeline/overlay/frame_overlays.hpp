#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/overlay.hpp"
#include "pipeline/base/rational.hpp"
#include "pipeline/overlay/clock_text.hpp"
#include "pipeline/overlay/overlay_options.hpp"
#include "pipeline/overlay/text_painter.hpp"

namespace framelane {

/// What an encode's frames of one format get drawn over them. A text is drawn again only when it
/// changes. One thread at a time.
class FrameOverlays {
 public:
  /// `sample_aspect_ratio`: of the frames, positive (ITU-T H.264, E.2.1). What is drawn keeps its
  /// shape as it is shown; beyond 1:16 and 16:1 that is not true to the ratio. Throws
  /// FeedError(kConfiguration) for a font or an image that cannot be used.
  FrameOverlays(std::span<const OverlayOptions> options, const PictureSize& frame,
                Rational sample_aspect_ratio, PixelFormat format, const ColorSpec& color);

  /// True if at() has to draw a text for a frame that was taken then.
  bool changes_at(std::chrono::system_clock::time_point time);
  /// For a frame that was taken then. The same pointer as long as nothing changes; neither it nor
  /// its overlays change afterwards.
  std::shared_ptr<const Overlays> at(std::chrono::system_clock::time_point time);

 private:
  struct Text {
    const OverlayOptions* options;
    std::size_t index;  // in overlays_
    ClockText clock;
    std::unique_ptr<TextPainter> painter;
    std::optional<std::string> drawn;
  };

  /// Across and down.
  PictureSize margins() const;
  std::shared_ptr<const Overlay> place(const RgbaPicture& picture,
                                       const OverlayOptions& options) const;

  const std::vector<OverlayOptions> options_;
  const PictureSize frame_;
  const double shape_;  // the width of a pixel as it is shown, divided by its height
  const PixelFormat format_;
  const ColorSpec color_;
  std::vector<Text> texts_;
  std::shared_ptr<const Overlays> overlays_;
};

}  // namespace framelane
