#include "pipeline/encode/picture_choice.hpp"

extern "C" {
#include <libavutil/mathematics.h>
}

#include <algorithm>
#include <climits>
#include <cstdint>

#include "kernels/picture_limits.hpp"

namespace framelane {
namespace {

std::string text_of(const PictureSize& size) {
  return std::to_string(size.width) + "x" + std::to_string(size.height);
}

/// a * b / c as the nearest even number, and at least 2. (Chroma of 4:2:0 needs even numbers.)
int even(std::int64_t a, std::int64_t b, std::int64_t c) {
  const std::int64_t half = av_rescale(a, b, 2 * c);
  return static_cast<int>(std::clamp<std::int64_t>(2 * half, 2, INT_MAX - 1));
}

Orientation orientation_of(const PictureOptions& options) {
  const int turns = options.rotation / 90;
  Orientation result{.transposed = turns % 2 != 0,
                     .mirrored = turns == 1 || turns == 2,
                     .upside_down = turns == 2 || turns == 3};
  if (options.flip == Flip::kHorizontal) result.mirrored = !result.mirrored;
  if (options.flip == Flip::kVertical) result.upside_down = !result.upside_down;
  return result;
}

/// A part of `whole` in its middle, which begins at an even number.
int middle(int whole, int part) { return (whole - part) / 4 * 2; }

/// `across` and `down`: the shape that is kept.
PictureSize size_of(const std::optional<SizeOption>& option, const PictureSize& source,
                    std::int64_t across, std::int64_t down) {
  if (!option) return source;
  if (option->percent > 0) {
    return {even(source.width, option->percent, 100), even(source.height, option->percent, 100)};
  }
  const int width =
      option->width == SizeOption::kKeepsShape ? even(option->height, across, down) : option->width;
  const int height = option->height == SizeOption::kKeepsShape ? even(option->width, down, across)
                                                               : option->height;
  return {width, height};
}

}  // namespace

std::optional<PictureChoice> choose_picture(const PictureOptions& options,
                                            const PictureSize& source,
                                            AVRational sample_aspect_ratio, std::string& problem) {
  const Rect whole{0, 0, source.width, source.height};
  Rect crop = options.crop.value_or(whole);
  if (crop.x + crop.width > source.width || crop.y + crop.height > source.height) {
    problem = "crop " + text_of(crop.size()) + "+" + std::to_string(crop.x) + "+" +
              std::to_string(crop.y) + " lies outside the picture of " + text_of(source);
    return std::nullopt;
  }
  const Orientation orientation = orientation_of(options);
  PictureSize turned = orientation.turned(crop.size());
  const bool shape_is_known = sample_aspect_ratio.num > 0 && sample_aspect_ratio.den > 0;
  AVRational shape = sample_aspect_ratio;
  if (orientation.transposed && shape_is_known) shape = av_inv_q(shape);
  const AVRational pixel = shape_is_known ? shape : AVRational{1, 1};
  // The picture's shape as it is shown is `across` to `down`.
  const std::int64_t across = std::int64_t{turned.width} * pixel.num;
  const std::int64_t down = std::int64_t{turned.height} * pixel.den;
  // Pixels keep their shape if the picture is stretched; otherwise they become square.
  const PictureSize size = options.fit == Fit::kStretch
                               ? size_of(options.size, turned, turned.width, turned.height)
                               : size_of(options.size, turned, across, down);
  if (options.size && (size.width > kMaxPictureSide || size.height > kMaxPictureSide)) {
    problem = "the size " + text_of(size) + " of " + text_of(turned) + " is above " +
              text_of({kMaxPictureSide, kMaxPictureSide});
    return std::nullopt;
  }
  Rect place{0, 0, size.width, size.height};
  const bool wider = across * size.height > down * size.width;
  switch (options.fit) {
    case Fit::kStretch:
      // What is not known stays so if it does not change.
      if (std::int64_t{turned.width} * size.height != std::int64_t{turned.height} * size.width) {
        av_reduce(&shape.num, &shape.den, across * size.height, down * size.width, INT_MAX);
      }
      break;
    case Fit::kContain:
      if (wider) {
        place.height = std::min(even(size.width, down, across), size.height);
      } else {
        place.width = std::min(even(size.height, across, down), size.width);
      }
      place.x = middle(size.width, place.width);
      place.y = middle(size.height, place.height);
      if (shape_is_known) shape = {1, 1};
      break;
    case Fit::kCover: {
      if (wider) {
        turned.width = std::min(even(size.width * std::int64_t{pixel.den}, turned.height,
                                     size.height * std::int64_t{pixel.num}),
                                turned.width);
      } else {
        turned.height = std::min(even(size.height * std::int64_t{pixel.num}, turned.width,
                                      size.width * std::int64_t{pixel.den}),
                                 turned.height);
      }
      const auto [width, height] = orientation.turned(turned);  // turned back
      crop = {crop.x + middle(crop.width, width), crop.y + middle(crop.height, height), width,
              height};
      if (shape_is_known) shape = {1, 1};
      break;
    }
  }
  PictureChoice choice{std::nullopt, size, shape};
  if (crop != whole || place != whole || size != source || orientation != Orientation{}) {
    choice.scaling = Scaling{crop, size, place, options.filter, options.background, orientation};
  }
  return choice;
}

}  // namespace framelane
