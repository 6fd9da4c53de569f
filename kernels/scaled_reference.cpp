#include "kernels/scaled_reference.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdlib>
#include <memory>
#include <utility>

#include "kernels/chroma_taps.hpp"
#include "kernels/picture_part.hpp"

namespace framelane {
namespace {

int bits_of(std::int64_t number) {
  return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(std::abs(number))));
}

/// How a picture's sizes, formats and sitings become filters.
class TermMaker {
 public:
  explicit TermMaker(const Conversion& conversion)
      : scaling_(*conversion.scaling),
        from_(info(conversion.source)),
        to_(info(conversion.target)),
        from_siting_(conversion.source_color.siting),
        to_siting_(conversion.target_color.siting),
        mixes_(mixes_channels(conversion)) {}

  ScaleTerms luma() const {
    ScaleTerms terms;
    if (from_.rgb || (mixes_ && !halves_chroma())) {
      terms.push_back(term(0, 3, false, false));
    } else {
      terms.push_back(term(0, 1, false, false));
      if (mixes_) terms.push_back(term(1, 2, true, false));
    }
    return terms;
  }

  ScaleTerms chroma() const {
    ScaleTerms terms;
    if (to_.gray || from_.gray) return terms;
    terms.push_back(from_.rgb ? term(0, 3, false, true) : term(1, 2, true, true));
    return terms;
  }

 private:
  bool halves_chroma() const { return from_.chroma_half_width || from_.chroma_half_height; }

  ScaleTerm term(int first_channel, int channels, bool from_chroma, bool to_chroma) const {
    const auto table = [&](int source, int target, bool mirrored, const AxisGrid& from,
                           const AxisGrid& to) {
      return AxisTable(AxisFilter({.source_pixels = source,
                                   .target_pixels = target,
                                   .source = mirrored ? from.mirrored(source) : from,
                                   .target = to,
                                   .filter = scaling_.filter,
                                   .over_sites = mixes_}));
    };
    const Orientation& turn = scaling_.orientation;
    const PictureSize size = turn.turned(scaling_.crop.size());
    AxisGrid across{from_chroma && from_.chroma_half_width, cosited_across(from_siting_) ? 0 : 1};
    AxisGrid down{from_chroma && from_.chroma_half_height, cosited_down(from_siting_) ? 0 : 1};
    if (turn.transposed) std::swap(across, down);
    const AxisGrid to_across{to_chroma && to_.chroma_half_width,
                             cosited_across(to_siting_) ? 0 : 1};
    const AxisGrid to_down{to_chroma && to_.chroma_half_height, cosited_down(to_siting_) ? 0 : 1};
    return {first_channel, channels,
            table(size.width, scaling_.place.width, turn.mirrored, across, to_across),
            table(size.height, scaling_.place.height, turn.upside_down, down, to_down)};
  }

  const Scaling& scaling_;
  const PixelFormatInfo& from_;
  const PixelFormatInfo& to_;
  const Siting from_siting_, to_siting_;
  const bool mixes_;
};

struct Reader {
  const std::array<ConstChannel, 3>& from;

  int operator()(int k, int column, int row) const {
    return from[static_cast<std::size_t>(k)].at(column, row);
  }
};

class ScaledReference final : public Converter {
 public:
  explicit ScaledReference(const Conversion& conversion)
      : scaling_(*conversion.scaling),
        background_(background_codes(conversion)),
        samples_(conversion) {}

  void run(const ConstImageView& source, const ImageView& target, int row_begin,
           int row_end) const override {
    const Rect& place = scaling_.place;
    fill_background(place, background_, target, row_begin, row_end);
    const auto from = turned(channels(cropped(source, scaling_.crop)), scaling_.orientation);
    const auto to = channels(cropped(target, place));
    for (std::size_t k = 0; k < (info(target.format).gray ? 1 : 3); ++k) {
      const bool half = to[k].half_height;
      const int begin = std::max(row_begin - place.y, 0) >> (half ? 1 : 0);
      const int end =
          std::min((row_end - place.y + (half ? 1 : 0)) >> (half ? 1 : 0), to[k].height);
      for (int y = begin; y < end; ++y) {
        for (int x = 0; x < to[k].width; ++x)
          to[k].at(x, y) = samples_.by_whole_numbers(from, k, x, y);
      }
    }
  }

  const char* name() const override { return "scaled reference"; }

 private:
  const Scaling scaling_;
  const std::array<std::uint8_t, 3> background_;
  const ScaledSamples samples_;
};

}  // namespace

AxisTable::AxisTable(const AxisFilter& filter) {
  std::vector<AxisWeights> rows;
  for (int i = 0; i < filter.target_samples(); ++i) rows.push_back(filter.at(i));
  first_.resize(rows.size());
  std::int32_t least = filter.source_samples();
  for (std::size_t i = rows.size(); i-- > 0;) {
    const AxisWeights& row = rows[i];
    least = std::min(least, row.first);
    first_[i] = least;
    taps_ = std::max(taps_, row.first - least + static_cast<int>(row.numerators.size()));
  }
  const auto taps = static_cast<std::size_t>(taps_);
  numerators_.resize(rows.size() * taps);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const AxisWeights& row = rows[i];
    first_[i] = std::min(first_[i], filter.source_samples() - taps_);
    std::ranges::copy(row.numerators, numerators_.begin() + static_cast<std::ptrdiff_t>(i * taps) +
                                          (row.first - first_[i]));
    denominators_.push_back(row.denominator);
  }
  for (std::size_t i = 0; i < numerators_.size(); ++i) {
    weights_.push_back(static_cast<double>(numerators_[i]) /
                       static_cast<double>(denominators_[i / taps]));
  }
}

ScaledSamples::ScaledSamples(const Conversion& conversion)
    : forms_(color_transform(conversion)),
      luma_(TermMaker(conversion).luma()),
      chroma_(TermMaker(conversion).chroma()) {
  for (const ScaleTerm& term : luma_) luma_views_.push_back(term.view());
  for (const ScaleTerm& term : chroma_) chroma_views_.push_back(term.view());
  for (std::size_t k = 0; k < 3; ++k) {
    const LinearForm& form = forms_[k];
    int bits = std::max(bits_of(form.denominator), bits_of(form.offset));
    for (const std::int64_t c : form.coefficients) bits = std::max(bits, bits_of(c));
    for (const ScaleTerm& term : terms(k)) {
      bits += bits_of(std::ranges::max(term.across.denominators())) +
              bits_of(std::ranges::max(term.down.denominators()));
    }
    // Besides a sample's 8 bits: the factor 2 of rounding, weights that add up to more than the
    // denominator where others are negative (less than twice), and three channels.
    const bool narrow = bits + 8 + 1 + 2 + 2 < 127;
    const auto& [a, b, c] = form.coefficients;
    sum_forms_[k] = {{a, b, c}, form.offset, form.denominator, narrow};
  }
}

std::uint8_t ScaledSamples::at(const std::array<ConstChannel, 3>& from, std::size_t channel, int x,
                               int y) const {
  const std::vector<TermView>& views = channel == 0 ? luma_views_ : chroma_views_;
  if (views.empty()) return kNeutralChroma;
  return code_near(real_value(from, channel, x, y), views.data(), static_cast<int>(views.size()),
                   sum_forms_[channel], x, y, Reader{from});
}

/// As exact_sum::real_value, and as exact: the quotients are only rounded before the sum.
double ScaledSamples::real_value(const std::array<ConstChannel, 3>& from, std::size_t channel,
                                 int x, int y) const {
  const LinearForm& form = forms_[channel];
  auto sum = static_cast<double>(form.offset);
  for (const ScaleTerm& term : terms(channel)) {
    const double* const columns = term.across.weights(x);
    const double* const rows = term.down.weights(y);
    const int column = term.across.first()[static_cast<std::size_t>(x)];
    const int row = term.down.first()[static_cast<std::size_t>(y)];
    for (int c = 0; c < term.channels; ++c) {
      const auto k = static_cast<std::size_t>(term.first_channel) + static_cast<std::size_t>(c);
      const ConstChannel& samples = from[k];
      double of_channel = 0;
      for (int j = 0; j < term.down.taps(); ++j) {
        const std::uint8_t* sample = &samples.at(column, row + j);
        double of_row = 0;
        for (int i = 0; i < term.across.taps(); ++i, sample += samples.step) {
          of_row += columns[i] * *sample;
        }
        of_channel += rows[j] * of_row;
      }
      sum += static_cast<double>(form.coefficients[k]) * of_channel;
    }
  }
  return sum / static_cast<double>(form.denominator);
}

std::uint8_t ScaledSamples::by_whole_numbers(const std::array<ConstChannel, 3>& from,
                                             std::size_t channel, int x, int y) const {
  const std::vector<TermView>& views = channel == 0 ? luma_views_ : chroma_views_;
  if (views.empty()) return kNeutralChroma;
  return whole_number_code(views.data(), static_cast<int>(views.size()), sum_forms_[channel], x, y,
                           Reader{from});
}

std::unique_ptr<const Converter> make_scaled_reference_converter(const Conversion& conversion) {
  return std::make_unique<ScaledReference>(conversion);
}

}  // namespace framelane
