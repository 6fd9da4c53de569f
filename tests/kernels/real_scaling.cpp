#include "tests/kernels/real_scaling.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "kernels/channel.hpp"
#include "kernels/linear_transform.hpp"

namespace framelane {
namespace {

using Real = long double;

Real value_at(ScaleFilter filter, Real x) {
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
      return std::max(1 - x, Real{0});
  }
}

}  // namespace

std::vector<Real> real_weights(const AxisFilter::Shape& shape, int i) {
  const Real ratio = Real(shape.source_pixels) / Real(shape.target_pixels);
  const Real target = shape.target.half ? Real(2 * i) + Real(shape.target.offset) / 2 : Real(i);
  Real place = (target + 0.5L) * ratio - 0.5L;
  Real distance = ratio * (shape.target.half ? 2 : 1);
  if (shape.source.half) {
    place = (place - Real(shape.source.offset) / 2) / 2;
    distance /= 2;
  }
  const Real width = std::max(distance, Real{1});
  const int samples = shape.source.samples(shape.source_pixels);
  std::vector<Real> weights(static_cast<std::size_t>(samples));
  Real sum = 0;
  const int reach = static_cast<int>(3 * width) + 2;
  const int middle = static_cast<int>(std::floor(place));
  for (int k = middle - reach; k <= middle + reach; ++k) {
    Real weight = 0;
    if (shape.filter == ScaleFilter::kArea) {
      weight = std::max(Real{0}, std::min(Real(k) + 0.5L, place + width / 2) -
                                     std::max(Real(k) - 0.5L, place - width / 2));
    } else {
      weight = value_at(shape.filter, (Real(k) - place) / width);
    }
    sum += weight;
    weights[static_cast<std::size_t>(std::clamp(k, 0, samples - 1))] += weight;
  }
  for (Real& weight : weights) weight /= sum;
  return weights;
}

Real real_sample(const Conversion& conversion, const ConstImageView& source, std::size_t channel,
                 int x, int y) {
  const PixelFormatInfo& from = info(conversion.source);
  const PixelFormatInfo& to = info(conversion.target);
  if (channel > 0 && from.gray) return 128;
  const LinearForm form = color_transform(conversion)[channel];
  const auto channels_of_source = channels(source);
  Real result = Real(form.offset) / Real(form.denominator);
  for (std::size_t k = 0; k < 3; ++k) {
    if (form.coefficients[k] == 0) continue;
    const ConstChannel& samples = channels_of_source[k];
    const Siting from_siting = conversion.source_color.siting;
    const Siting to_siting = conversion.target_color.siting;
    const AxisFilter::Shape across{
        .source_pixels = conversion.width,
        .target_pixels = conversion.scaling->target.width,
        .source = {samples.half_width, from_siting == Siting::kCenter ? 1 : 0},
        .target = {channel > 0 && to.chroma_half_width, to_siting == Siting::kCenter ? 1 : 0},
        .filter = conversion.scaling->filter};
    const AxisFilter::Shape down{
        .source_pixels = conversion.height,
        .target_pixels = conversion.scaling->target.height,
        .source = {samples.half_height, from_siting == Siting::kTopLeft ? 0 : 1},
        .target = {channel > 0 && to.chroma_half_height, to_siting == Siting::kTopLeft ? 0 : 1},
        .filter = conversion.scaling->filter};
    const std::vector<Real> columns = real_weights(across, x);
    const std::vector<Real> rows = real_weights(down, y);
    Real sum = 0;
    for (int j = 0; j < samples.height; ++j) {
      if (rows[static_cast<std::size_t>(j)] == 0) continue;
      for (int i = 0; i < samples.width; ++i) {
        sum += rows[static_cast<std::size_t>(j)] * columns[static_cast<std::size_t>(i)] *
               Real(samples.at(i, j));
      }
    }
    result += Real(form.coefficients[k]) / Real(form.denominator) * sum;
  }
  return result;
}

}  // namespace framelane
