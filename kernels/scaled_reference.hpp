#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/channel.hpp"
#include "kernels/converter.hpp"
#include "kernels/exact_sum.hpp"
#include "kernels/linear_transform.hpp"

namespace framelane {

/// The weights of an AxisFilter for every sample of the target, each of as many of the source's
/// samples. The first ones are in rising order.
class AxisTable {
 public:
  AxisTable() = default;
  explicit AxisTable(const AxisFilter& filter);

  int samples() const { return static_cast<int>(first_.size()); }
  int taps() const { return taps_; }
  std::span<const std::int32_t> first() const { return first_; }
  /// taps() for each sample.
  std::span<const std::int64_t> numerators() const { return numerators_; }
  std::span<const std::int64_t> denominators() const { return denominators_; }
  /// The quotients of sample i, rounded.
  const double* weights(int i) const { return weights_.data() + std::ptrdiff_t{i} * taps_; }
  AxisView view() const { return {first_.data(), numerators_.data(), denominators_.data(), taps_}; }

 private:
  int taps_ = 0;
  std::vector<std::int32_t> first_;
  std::vector<std::int64_t> numerators_;
  std::vector<std::int64_t> denominators_;
  std::vector<double> weights_;
};

/// The channels that lie on one grid of the source, and the filters that bring them to a grid of
/// the target.
struct ScaleTerm {
  int first_channel = 0;
  int channels = 1;
  AxisTable across, down;

  TermView view() const { return {first_channel, channels, across.view(), down.view()}; }
};

/// What the samples of one grid of the target, luma or both of chroma, are made of: a sum over its
/// terms' channels. Chroma of a gray source has none.
using ScaleTerms = std::vector<ScaleTerm>;

/// The exact samples of a scaled picture (docs/scaling.md), each on its own. Immutable.
class ScaledSamples {
 public:
  /// Requires conversion.scaling and !why_unsupported(conversion).
  explicit ScaledSamples(const Conversion& conversion);
  ScaledSamples(const ScaledSamples&) = delete;
  ScaledSamples& operator=(const ScaledSamples&) = delete;

  /// Sample (x, y) of the target's channel 0 (Y), 1 (U) or 2 (V), on the channel's own grid of the
  /// part scaling.place. `from` are the channels of the part scaling.crop, turned.
  std::uint8_t at(const std::array<ConstChannel, 3>& from, std::size_t channel, int x, int y) const;
  /// The same, in whole numbers alone.
  std::uint8_t by_whole_numbers(const std::array<ConstChannel, 3>& from, std::size_t channel, int x,
                                int y) const;

  const ScaleTerms& terms(std::size_t channel) const { return channel == 0 ? luma_ : chroma_; }
  const LinearForm& form(std::size_t channel) const { return forms_[channel]; }
  const SumForm& sum_form(std::size_t channel) const { return sum_forms_[channel]; }

 private:
  double real_value(const std::array<ConstChannel, 3>& from, std::size_t channel, int x,
                    int y) const;

  std::array<LinearForm, 3> forms_;
  ScaleTerms luma_, chroma_;
  std::array<SumForm, 3> sum_forms_{};
  std::vector<TermView> luma_views_, chroma_views_;
};

/// A converter that makes every sample with ScaledSamples: slow.
std::unique_ptr<const Converter> make_scaled_reference_converter(const Conversion& conversion);

}  // namespace framelane
