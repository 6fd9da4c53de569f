#include "tests/kernels/real_scaling.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "kernels/channel.hpp"
#include "kernels/linear_transform.hpp"

namespace framelane {
namespace {

long double value_at(ScaleFilter filter, long double x) {
  x = std::abs(x);
  switch (filter) {
    case ScaleFilter::kBicubic:
      if (x < 1) return (1.5L * x - 2.5L) * x * x + 1;
      return x < 2 ? ((-0.5L * x + 2.5L) * x - 4) * x + 2 : 0;
    case ScaleFilter::kSpline36:
      if (x < 1) return ((13.0L / 11 * x - 453.0L / 209) * x - 3.0L / 209) * x + 1;
      if (x < 2) {
        x -= 1;
        return ((-6.0L / 11 * x + 270.0L / 209) * x - 156.0L / 209) * x;
      }
      x -= 2;
      return x < 1 ? ((1.0L / 11 * x - 45.0L / 209) * x + 26.0L / 209) * x : 0;
    default:
      return std::max(1 - x, static_cast<long double>(0));
  }
}

}  // namespace

std::vector<long double> real_weights(const AxisFilter::Shape& shape, int i) {
  const long double ratio =
      static_cast<long double>(shape.source_pixels) / static_cast<long double>(shape.target_pixels);
  const long double target =
      shape.target.half
          ? static_cast<long double>(2 * i) + static_cast<long double>(shape.target.offset) / 2
          : static_cast<long double>(i);
  long double place = (target + 0.5L) * ratio - 0.5L;
  long double distance = ratio * (shape.target.half ? 2 : 1);
  if (shape.source.half) {
    place = (place - static_cast<long double>(shape.source.offset) / 2) / 2;
    distance /= 2;
  }
  const long double width = std::max(distance, static_cast<long double>(1));
  const int samples = shape.source.samples(shape.source_pixels);
  std::vector<long double> weights(static_cast<std::size_t>(samples));
  long double sum = 0;
  const int reach = static_cast<int>(3 * width) + 2;
  const int middle = static_cast<int>(std::floor(place));
  for (int k = middle - reach; k <= middle + reach; ++k) {
    long double weight = 0;
    if (shape.filter == ScaleFilter::kArea) {
      weight = std::max(static_cast<long double>(0),
                        std::min(static_cast<long double>(k) + 0.5L, place + width / 2) -
                            std::max(static_cast<long double>(k) - 0.5L, place - width / 2));
    } else {
      weight = value_at(shape.filter, (static_cast<long double>(k) - place) / width);
    }
    sum += weight;
    weights[static_cast<std::size_t>(std::clamp(k, 0, samples - 1))] += weight;
  }
  for (long double& weight : weights) weight /= sum;
  return weights;
}

long double real_sample(const Conversion& conversion, const ConstImageView& source,
                        std::size_t channel, int x, int y) {
  const PixelFormatInfo& from = info(conversion.source);
  const PixelFormatInfo& to = info(conversion.target);
  if (channel > 0 && from.gray) return 128;
  const LinearForm form = color_transform(conversion)[channel];
  const auto channels_of_source = channels(source);
  long double result =
      static_cast<long double>(form.offset) / static_cast<long double>(form.denominator);
  for (std::size_t k = 0; k < 3; ++k) {
    if (form.coefficients[k] == 0) continue;
    const ConstChannel& samples = channels_of_source[k];
    const Siting from_siting = conversion.source_color.siting;
    const Siting to_siting = conversion.target_color.siting;
    // Of the source: where chroma's first sample is behind the first pixel, in half pixels.
    int offset_x = from_siting == Siting::kCenter ? 1 : 0;
    int offset_y = from_siting == Siting::kTopLeft ? 0 : 1;
    const Orientation& turn = conversion.scaling->orientation;
    const PictureSize size = turn.turned({conversion.width, conversion.height});
    if (turn.transposed) std::swap(offset_x, offset_y);
    const bool half_x = turn.transposed ? samples.half_height : samples.half_width;
    const bool half_y = turn.transposed ? samples.half_width : samples.half_height;
    const int count_x = turn.transposed ? samples.height : samples.width;
    const int count_y = turn.transposed ? samples.width : samples.height;
    // Read backwards, the last sample is the first.
    if (turn.mirrored) offset_x = 2 * (size.width - 1) - (4 * (count_x - 1) + offset_x);
    if (turn.upside_down) offset_y = 2 * (size.height - 1) - (4 * (count_y - 1) + offset_y);
    const AxisFilter::Shape across{
        .source_pixels = size.width,
        .target_pixels = conversion.scaling->target.width,
        .source = {half_x, offset_x},
        .target = {channel > 0 && to.chroma_half_width, to_siting == Siting::kCenter ? 1 : 0},
        .filter = conversion.scaling->filter};
    const AxisFilter::Shape down{
        .source_pixels = size.height,
        .target_pixels = conversion.scaling->target.height,
        .source = {half_y, offset_y},
        .target = {channel > 0 && to.chroma_half_height, to_siting == Siting::kTopLeft ? 0 : 1},
        .filter = conversion.scaling->filter};
    const auto sample_at = [&](int column, int row) {
      if (turn.mirrored) column = count_x - 1 - column;
      if (turn.upside_down) row = count_y - 1 - row;
      return turn.transposed ? samples.at(row, column) : samples.at(column, row);
    };
    const std::vector<long double> columns = real_weights(across, x);
    const std::vector<long double> rows = real_weights(down, y);
    long double sum = 0;
    for (int j = 0; j < count_y; ++j) {
      if (rows[static_cast<std::size_t>(j)] == 0) continue;
      for (int i = 0; i < count_x; ++i) {
        sum += rows[static_cast<std::size_t>(j)] * columns[static_cast<std::size_t>(i)] *
               static_cast<long double>(sample_at(i, j));
      }
    }
    result += static_cast<long double>(form.coefficients[k]) /
              static_cast<long double>(form.denominator) * sum;
  }
  return result;
}

}  // namespace framelane
