#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/channel.hpp"
#include "kernels/converter.hpp"
#include "kernels/linear_transform.hpp"
#include "kernels/wide_int.hpp"

namespace framelane {

/// The weights of an AxisFilter for every sample of the target.
class AxisTable {
 public:
  struct Row {
    int first;
    std::span<const std::int64_t> numerators;
    std::int64_t denominator;
  };
  AxisTable() = default;
  explicit AxisTable(const AxisFilter& filter);

  Row operator[](int i) const;
  int samples() const { return static_cast<int>(rows_.size()); }
  int source_samples() const { return source_samples_; }
  /// The largest numbers of any row: bits of the denominator, and how many samples it has.
  int denominator_bits() const { return denominator_bits_; }
  int most_taps() const { return most_taps_; }

 private:
  struct Place {
    int first;
    std::size_t begin;
    std::size_t count;
    std::int64_t denominator;
  };
  std::vector<Place> rows_;
  std::vector<std::int64_t> numerators_;
  int source_samples_ = 0;
  int denominator_bits_ = 0;
  int most_taps_ = 0;
};

/// The channels that lie on one grid of the source, and the filters that bring them to a grid of
/// the target.
struct ScaleTerm {
  std::vector<std::size_t> channels;
  AxisTable across, down;
};

/// Samples of one grid of the target: luma, or both of chroma. Each is a linear form of the terms'
/// channels.
struct ScaleGroup {
  std::vector<ScaleTerm> terms;
};

/// The exact samples of a scaled picture (docs/scaling.md), each on its own. Immutable.
class ScaledSamples {
 public:
  /// Requires conversion.scaling and !why_unsupported(conversion).
  explicit ScaledSamples(const Conversion& conversion);

  /// Sample (x, y) of the target's channel 0 (Y), 1 (U) or 2 (V), on the channel's own grid of the
  /// part scaling.place. `from` are the channels of the part scaling.crop.
  std::uint8_t at(const std::array<ConstChannel, 3>& from, std::size_t channel, int x, int y) const;

  const ScaleGroup& group(std::size_t channel) const { return channel == 0 ? luma_ : chroma_; }
  const LinearForm& form(std::size_t channel) const { return forms_[channel]; }

 private:
  template <typename Int>
  std::uint8_t sum(const std::array<ConstChannel, 3>& from, std::size_t channel, int x,
                   int y) const;

  std::array<LinearForm, 3> forms_;
  ScaleGroup luma_, chroma_;
  std::array<bool, 3> narrow_{};  // 128 bits are enough for a sample of the channel
};

/// A converter that makes every sample with ScaledSamples: slow.
std::unique_ptr<const Converter> make_scaled_reference_converter(const Conversion& conversion);

/// The part `crop` of a picture, which begins at whole samples of each plane.
ConstImageView cropped(const ConstImageView& image, const Rect& crop);
ImageView cropped(const ImageView& image, const Rect& crop);

/// Fills what lies outside scaling.place in rows [row_begin, row_end) with the background.
void fill_background(const Conversion& conversion, const ImageView& target, int row_begin,
                     int row_end);

}  // namespace framelane
