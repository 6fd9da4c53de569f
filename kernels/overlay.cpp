#include "kernels/overlay.hpp"

#include <algorithm>
#include <cstdint>

#include "kernels/channel.hpp"
#include "kernels/linear_transform.hpp"

namespace framelane {
namespace {

using Rgb = std::array<std::uint8_t, 3>;

/// R'G'B' in full range to the codes of a format and colour, for many pixels.
class Codes {
 public:
  Codes(PixelFormat format, const ColorSpec& color) : rgb_(info(format).rgb) {
    if (rgb_) return;
    forms_ = color_transform({Matrix::kRgb, Range::kFull}, color);
    for (LinearForm& form : forms_) form = form.rounding_for_scale(1);
  }
  /// Channel by channel, because the last colour is remembered: most neighbours have the same.
  std::uint8_t operator()(std::size_t channel, const Rgb& rgb) {
    if (rgb_) return rgb[channel];
    if (channel != channel_ || rgb != last_) {
      channel_ = channel;
      last_ = rgb;
      code_ = forms_[channel].floor_to_byte({rgb[0], rgb[1], rgb[2]});
    }
    return code_;
  }

 private:
  bool rgb_;
  std::array<LinearForm, 3> forms_{};
  std::size_t channel_ = SIZE_MAX;
  Rgb last_{};
  std::uint8_t code_ = 0;
};

int divided(int sum, int count) { return (sum + count / 2) / count; }

/// The colour and weight of the pixels [left, right) x [top, bottom).
struct Mean {
  Rgb color{};
  std::uint8_t weight = 0;
};
Mean mean_of(const RgbaPicture& picture, int left, int top, int right, int bottom) {
  if (right - left == 1 && bottom - top == 1) {
    const std::uint8_t* const pixel = picture.at(left, top);
    return {{pixel[0], pixel[1], pixel[2]}, pixel[3]};
  }
  int weight = 0;
  std::array<int, 3> sums{};
  for (int y = top; y < bottom; ++y) {
    for (int x = left; x < right; ++x) {
      const std::uint8_t* const pixel = picture.at(x, y);
      weight += pixel[3];
      for (std::size_t k = 0; k < sums.size(); ++k) sums[k] += pixel[3] * pixel[k];
    }
  }
  Mean mean;
  if (weight == 0) return mean;
  mean.weight = static_cast<std::uint8_t>(divided(weight, (right - left) * (bottom - top)));
  for (std::size_t k = 0; k < sums.size(); ++k) {
    mean.color[k] = static_cast<std::uint8_t>(divided(sums[k], weight));
  }
  return mean;
}

/// What lies in `place` of the frame of a picture at x and y: transparent where it does not reach.
RgbaPicture inside(const RgbaPicture& picture, int x, int y, const Rect& place) {
  RgbaPicture part{place.width, place.height, {}};
  part.pixels.resize(std::size_t{4} * static_cast<std::size_t>(place.width) *
                     static_cast<std::size_t>(place.height));
  const auto columns = static_cast<std::size_t>(std::min(place.width, x + picture.width - place.x));
  const int rows = std::min(place.height, y + picture.height - place.y);
  for (int row = 0; row < rows; ++row) {
    std::copy_n(picture.at(place.x - x, place.y + row - y), 4 * columns, part.at(0, row));
  }
  return part;
}

}  // namespace

Overlay::Overlay(const RgbaPicture& picture, int x, int y, const PictureSize& frame,
                 PixelFormat format, const ColorSpec& color)
    : format_(format) {
  x = x >> 1 << 1;  // rounded down, also below zero
  y = y >> 1 << 1;
  const int left = std::max(x, 0);
  const int top = std::max(y, 0);
  const int right = std::min(x + picture.width, frame.width);
  const int bottom = std::min(y + picture.height, frame.height);
  if (left >= right || top >= bottom) return;
  // Up to whole samples of chroma, or to the frame's edge.
  const Rect place{left, top, std::min((right + 1) / 2 * 2, frame.width) - left,
                   std::min((bottom + 1) / 2 * 2, frame.height) - top};
  const RgbaPicture part = inside(picture, x, y, place);

  const PixelFormatInfo& layout = info(format);
  for (int plane = 0; plane < layout.plane_count; ++plane) {
    Plane& to = planes_[static_cast<std::size_t>(plane)];
    to.left = static_cast<int>(plane_row_bytes(format, plane, left));
    to.top = plane_rows(format, plane, top);
    to.row_bytes = static_cast<int>(plane_row_bytes(format, plane, part.width));
    to.rows = plane_rows(format, plane, part.height);
    const auto bytes = static_cast<std::size_t>(to.row_bytes) * static_cast<std::size_t>(to.rows);
    to.codes = bytes_.size();
    to.weights = to.codes + bytes;
    bytes_.resize(to.weights + bytes);
  }
  // Codes and weights are laid out as pictures of the format, so that their channels can be found.
  ImageView codes{format, part.width, part.height, {}};
  ImageView weights = codes;
  for (std::size_t plane = 0; plane < static_cast<std::size_t>(layout.plane_count); ++plane) {
    const Plane& from = planes_[plane];
    codes.planes[plane] = {&bytes_[from.codes], from.row_bytes};
    weights.planes[plane] = {&bytes_[from.weights], from.row_bytes};
  }
  Codes code_of(format, color);
  const auto code_channels = channels(codes);
  const auto weight_channels = channels(weights);
  for (std::size_t k = 0; k < (layout.gray ? 1 : 3); ++k) {
    const Channel& channel = code_channels[k];
    const int across = channel.half_width ? 2 : 1;
    const int down = channel.half_height ? 2 : 1;
    for (int row = 0; row < channel.height; ++row) {
      for (int column = 0; column < channel.width; ++column) {
        const Mean mean =
            mean_of(part, column * across, row * down, std::min((column + 1) * across, part.width),
                    std::min((row + 1) * down, part.height));
        channel.at(column, row) = code_of(k, mean.color);
        weight_channels[k].at(column, row) = mean.weight;
      }
    }
  }
}

RowRange overlay_rows(const Overlay& overlay, int plane, int row_begin, int row_end) {
  const Overlay::Plane& place = overlay.planes()[static_cast<std::size_t>(plane)];
  const auto row_of = [&](int row) {
    return std::clamp(plane_rows(overlay.format(), plane, row) - place.top, 0, place.rows);
  };
  return {row_of(row_begin), row_of(row_end)};
}

void blend_reference(const Overlay& overlay, const ImageView& frame, int row_begin, int row_end) {
  for (int plane = 0; plane < info(overlay.format()).plane_count; ++plane) {
    const Overlay::Plane& place = overlay.planes()[static_cast<std::size_t>(plane)];
    const RowRange rows = overlay_rows(overlay, plane, row_begin, row_end);
    for (int row = rows.begin; row < rows.end; ++row) {
      const auto offset = static_cast<std::size_t>(row) * static_cast<std::size_t>(place.row_bytes);
      const std::uint8_t* const codes = &overlay.bytes()[place.codes + offset];
      const std::uint8_t* const weights = &overlay.bytes()[place.weights + offset];
      std::uint8_t* const to = frame.row(plane, place.top + row) + place.left;
      for (int i = 0; i < place.row_bytes; ++i) {
        to[i] = static_cast<std::uint8_t>(
            (weights[i] * codes[i] + (255 - weights[i]) * to[i] + 127) / 255);
      }
    }
  }
}

}  // namespace framelane
