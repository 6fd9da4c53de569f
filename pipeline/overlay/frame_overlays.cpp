#include "pipeline/overlay/frame_overlays.hpp"

#include <algorithm>
#include <cmath>

#include "pipeline/base/failure.hpp"
#include "pipeline/overlay/overlay_image.hpp"

namespace framelane {
namespace {

/// Between an overlay and the frame's edge, as a fraction of its height.
constexpr double kMargin = 0.02;

/// A fraction of a side, in pixels.
int pixels(double fraction, int side) { return static_cast<int>(std::lround(fraction * side)); }

/// Where something of this size begins in a side.
int begin_of(Along along, int side, int size, int margin) {
  switch (along) {
    case Along::kBegin:
      return margin;
    case Along::kMiddle:
      return (side - size) / 2;
    case Along::kEnd:
      return side - size - margin;
  }
  return margin;
}

RgbaPicture read_image(const OverlayOptions& options, const PictureSize& frame) {
  RgbaPicture image = read_png(options.image);
  if (options.width > 0) {
    const int width = std::max(pixels(options.width, frame.width), 1);
    const double ratio = static_cast<double>(width) / image.width;
    try {
      image = scaled(image, {width, std::max(pixels(ratio, image.height), 1)});
    } catch (const FeedError& error) {
      throw FeedError(error.code(), "the image " + options.image + ": " + error.what());
    }
  }
  fade(image, options.opacity);
  return image;
}

}  // namespace

FrameOverlays::FrameOverlays(std::span<const OverlayOptions> options, const PictureSize& frame,
                             PixelFormat format, const ColorSpec& color)
    : frame_(frame), format_(format), color_(color) {
  Overlays overlays;
  for (const OverlayOptions& option : options) {
    overlays.push_back(nullptr);
    if (!option.image.empty()) {
      overlays.back() = place(read_image(option, frame), option);
      continue;
    }
    const int margins = 2 * pixels(kMargin, frame.height);
    const PictureSize room{std::max(frame.width - margins, 1), std::max(frame.height - margins, 1)};
    texts_.push_back({&option, overlays.size() - 1, ClockText(option.text),
                      std::make_unique<TextPainter>(
                          option, std::max(pixels(option.size, frame.height), 1), room),
                      std::nullopt});
  }
  overlays_ = std::make_shared<const Overlays>(std::move(overlays));
}

std::shared_ptr<const Overlay> FrameOverlays::place(const RgbaPicture& picture,
                                                    const OverlayOptions& options) const {
  const int margin = pixels(kMargin, frame_.height);
  return std::make_shared<const Overlay>(
      picture, begin_of(options.across, frame_.width, picture.width, margin),
      begin_of(options.down, frame_.height, picture.height, margin), frame_, format_, color_);
}

std::shared_ptr<const Overlays> FrameOverlays::at(std::chrono::system_clock::time_point time) {
  std::optional<Overlays> changed;
  for (Text& text : texts_) {
    const std::string& now = text.clock.at(time);
    if (text.drawn == now) continue;
    if (!changed) changed = *overlays_;
    (*changed)[text.index] = place(text.painter->paint(now), *text.options);
    text.drawn = now;
  }
  if (changed) overlays_ = std::make_shared<const Overlays>(std::move(*changed));
  return overlays_;
}

}  // namespace framelane
