#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/overlay.hpp"
#include "pipeline/overlay/clock_text.hpp"
#include "pipeline/overlay/overlay_options.hpp"
#include "pipeline/overlay/text_painter.hpp"

namespace framelane {

/// What an encode's frames of one format get drawn over them. A text is drawn again only when it
/// changes. One thread at a time.
class FrameOverlays {
 public:
  /// `options` outlive it. Throws FeedError(kConfiguration) for a font or an image that cannot be
  /// used.
  FrameOverlays(std::span<const OverlayOptions> options, const PictureSize& frame,
                PixelFormat format, const ColorSpec& color);

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

  std::shared_ptr<const Overlay> place(const RgbaPicture& picture,
                                       const OverlayOptions& options) const;

  const PictureSize frame_;
  const PixelFormat format_;
  const ColorSpec color_;
  std::vector<Text> texts_;
  std::shared_ptr<const Overlays> overlays_;
};

}  // namespace framelane
