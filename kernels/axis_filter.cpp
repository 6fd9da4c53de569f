#include "kernels/axis_filter.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdlib>
#include <numeric>

#include "kernels/chroma_taps.hpp"
#include "kernels/picture_limits.hpp"

namespace framelane {
namespace {

using Int = std::int64_t;

/// The filters' kernels at the distance n / d, times a factor that depends on d alone. No value
/// exceeds 2^58 for d up to 2^16.

Int bilinear(Int n, Int d) { return std::max<Int>(d - n, 0); }

/// R. Keys, "Cubic convolution interpolation for digital image processing", 1981, eq. (15), times 2
/// d³.
Int bicubic(Int n, Int d) {
  if (n < d) return 3 * n * n * n - 5 * n * n * d + 2 * d * d * d;
  if (n < 2 * d) return -n * n * n + 5 * n * n * d - 8 * n * d * d + 4 * d * d * d;
  return 0;
}

/// H. Dersch's spline36: cubics through the samples, with the coefficients 13/11, -453/209, -3/209
/// and so on; times 209 d³.
Int spline36(Int n, Int d) {
  if (n < d) return ((247 * n - 453 * d) * n - 3 * d * d) * n + 209 * d * d * d;
  if (n < 2 * d) {
    n -= d;
    return ((-114 * n + 270 * d) * n - 156 * d * d) * n;
  }
  if (n < 3 * d) {
    n -= 2 * d;
    return ((19 * n - 45 * d) * n + 26 * d * d) * n;
  }
  return 0;
}

/// Collects weights of samples, those beyond the edges with the last ones.
class Collector {
 public:
  Collector(int first, int last, int samples)
      : end_(samples - 1),
        first_(std::clamp(first, 0, end_)),
        numerators_(static_cast<std::size_t>(std::clamp(last, 0, end_) - first_ + 1)) {}

  void add(int sample, Int weight) {
    numerators_[static_cast<std::size_t>(std::clamp(sample, 0, end_) - first_)] += weight;
  }

  /// In lowest terms, without weights of 0 at either end.
  AxisWeights take() {
    const auto is_zero = [](Int weight) { return weight == 0; };
    const auto begin = std::find_if_not(numerators_.begin(), numerators_.end(), is_zero);
    first_ += static_cast<int>(begin - numerators_.begin());
    numerators_.erase(numerators_.begin(), begin);
    while (numerators_.back() == 0) numerators_.pop_back();
    Int sum = 0;
    Int divisor = 0;
    for (const Int weight : numerators_) {
      sum += weight;
      if (divisor != 1) divisor = std::gcd(divisor, weight);
    }
    for (Int& weight : numerators_) weight /= divisor;
    return {first_, std::move(numerators_), sum / divisor};
  }

 private:
  int end_;
  int first_;
  std::vector<Int> numerators_;
};

}  // namespace

AxisWeights AxisFilter::at(int i) const {
  const AxisGrid& from = shape_.source;
  const bool is_usual = from.offset == 0 || from.offset == 1;
  const bool moved = from.half && (shape_.target.half ? from != shape_.target : !is_usual);
  const bool same_size = shape_.source_pixels == shape_.target_pixels && !moved;
  return same_size ? unscaled(i) : scaled(i);
}

AxisWeights AxisFilter::unscaled(int i) const {
  const int samples = source_samples();
  const bool down = shape_.target.half && !shape_.source.half;
  const bool up = shape_.source.half && !shape_.target.half;
  const int middle = down ? 2 * i : up ? i / 2 : i;
  Collector weights(middle - 1, middle + 1, samples);
  const auto add = [&](const Taps& taps, int factor) {
    for (std::size_t j = 0; j < taps.count; ++j)
      weights.add(taps.index[j], factor * taps.weight[j]);
  };
  const auto add_site = [&](int site, int factor) {
    add(shape_.source.half ? interpolating_taps(site, samples, shape_.source.offset == 0)
                           : identity_taps(site),
        factor);
  };
  if (!shape_.target.half) {
    add_site(i, 1);
  } else if (shape_.source.half && !shape_.over_sites) {
    add(identity_taps(i), 1);
  } else {
    const Taps sites = downsampling_taps(i, shape_.target_pixels, shape_.target.offset == 0);
    for (std::size_t j = 0; j < sites.count; ++j) add_site(sites.index[j], sites.weight[j]);
  }
  return weights.take();
}

/// A sample's place is that of the same point of the picture. In pixels of the target it is t = i,
/// or 2 i + offset; in those of the source s = (t + 1/2) S / D - 1/2; in samples of the source p =
/// s, or (s - offset) / 2.
AxisWeights AxisFilter::scaled(int i) const {
  const Int source = shape_.source_pixels;
  const Int target = shape_.target_pixels;
  const AxisGrid& from = shape_.source;
  const AxisGrid& to = shape_.target;
  assert(source <= kMostReduction * target);
  // 2 t + 1, and p = place / unit.
  const Int twice = to.half ? Int{4} * i + 1 + to.offset : Int{2} * i + 1;
  Int unit = (from.half ? 4 : 2) * target;
  Int place = twice * source - target * (from.half ? 1 + from.offset : 1);
  // How far samples of the target are apart, in the same unit.
  Int step = (to.half ? 4 : 2) * source;
  const Int divisor = std::gcd(std::gcd(unit, place), step);
  unit /= divisor;
  place /= divisor;
  step /= divisor;
  const Int width = std::max(unit, step);
  const Int radius = shape_.filter == ScaleFilter::kSpline36  ? 3 * width
                     : shape_.filter == ScaleFilter::kBicubic ? 2 * width
                                                              : width;
  const auto sample_at = [unit](Int where) {  // rounded down
    return static_cast<int>(where >= 0 ? where / unit : -((unit - 1 - where) / unit));
  };
  const int first = sample_at(place - radius);
  const int last = sample_at(place + radius) + 1;
  Collector weights(first, last, source_samples());
  for (int k = first; k <= last; ++k) {
    const Int distance = std::abs(k * unit - place);
    Int weight = 0;
    switch (shape_.filter) {
      case ScaleFilter::kBicubic:
        weight = bicubic(distance, width);
        break;
      case ScaleFilter::kSpline36:
        weight = spline36(distance, width);
        break;
      case ScaleFilter::kBilinear:
        weight = bilinear(distance, width);
        break;
      case ScaleFilter::kArea:  // twice what the sample and the area have in common
        weight = std::clamp<Int>(width + unit - 2 * distance, 0, 2 * unit);
        break;
    }
    weights.add(k, weight);
  }
  return weights.take();
}

}  // namespace framelane
