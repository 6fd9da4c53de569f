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

/// Ratios beyond it are mistakes, for which no glyph is made a hundred thousand pixels wide.
constexpr double kMostShape = 16;

double shape_of(Rational sample_aspect_ratio) {
  return std::clamp(static_cast<double>(sample_aspect_ratio.num) / sample_aspect_ratio.den,
                    1 / kMostShape, kMostShape);
}

PictureSize size_of(const RgbaPicture& image, const OverlayOptions& options,
                    const PictureSize& frame, double shape) {
  if (options.width == 0) return {std::max(pixels(1 / shape, image.width), 1), image.height};
  const int width = std::max(pixels(options.width, frame.width), 1);
  return {width, std::max(pixels(width * shape / image.width, image.height), 1)};
}

RgbaPicture read_image(const OverlayOptions& options, const PictureSize& frame, double shape) {
  RgbaPicture image = read_png(options.image);
  try {
    image = scaled(image, size_of(image, options, frame, shape));
  } catch (const FeedError& error) {
    throw FeedError(error.code(), "the image " + options.image + ": " + error.what());
  }
  fade(image, options.opacity);
  return image;
}

}  // namespace

FrameOverlays::FrameOverlays(std::span<const OverlayOptions> options, const PictureSize& frame,
                             Rational sample_aspect_ratio, PixelFormat format,
                             const ColorSpec& color)
    : options_(options.begin(), options.end()),
      frame_(frame),
      shape_(shape_of(sample_aspect_ratio)),
      format_(format),
      color_(color) {
  Overlays overlays;
  for (const OverlayOptions& option : options_) {
    overlays.push_back(nullptr);
    if (!option.image.empty()) {
      overlays.back() = place(read_image(option, frame, shape_), option);
      continue;
    }
    const auto [across, down] = margins();
    const PictureSize room{std::max(frame.width - 2 * across, 1),
                           std::max(frame.height - 2 * down, 1)};
    texts_.push_back({&option, overlays.size() - 1, ClockText(option.text),
                      std::make_unique<TextPainter>(
                          option, std::max(pixels(option.size, frame.height), 1), room, shape_),
                      std::nullopt});
  }
  overlays_ = std::make_shared<const Overlays>(std::move(overlays));
}

PictureSize FrameOverlays::margins() const {
  return {pixels(kMargin / shape_, frame_.height), pixels(kMargin, frame_.height)};
}

std::shared_ptr<const Overlay> FrameOverlays::place(const RgbaPicture& picture,
                                                    const OverlayOptions& options) const {
  const auto [across, down] = margins();
  return std::make_shared<const Overlay>(
      picture, begin_of(options.across, frame_.width, picture.width, across),
      begin_of(options.down, frame_.height, picture.height, down), frame_, format_, color_);
}

bool FrameOverlays::changes_at(std::chrono::system_clock::time_point time) {
  return std::ranges::any_of(texts_, [&](Text& text) { return text.drawn != text.clock.at(time); });
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
