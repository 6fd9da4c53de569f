#include "kernels/scaled_reference.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "kernels/chroma_taps.hpp"

namespace framelane {
namespace {

constexpr std::uint8_t kNeutralChroma = 128;

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

  ScaleGroup luma() const {
    ScaleGroup group;
    if (from_.rgb || (mixes_ && !halves_chroma())) {
      group.terms.push_back(term({0, 1, 2}, false, false));
    } else {
      group.terms.push_back(term({0}, false, false));
      if (mixes_) group.terms.push_back(term({1, 2}, true, false));
    }
    return group;
  }

  ScaleGroup chroma() const {
    ScaleGroup group;
    if (to_.gray || from_.gray) return group;
    group.terms.push_back(from_.rgb ? term({0, 1, 2}, false, true) : term({1, 2}, true, true));
    return group;
  }

 private:
  bool halves_chroma() const { return from_.chroma_half_width || from_.chroma_half_height; }

  ScaleTerm term(std::vector<std::size_t> channels, bool from_chroma, bool to_chroma) const {
    const auto table = [&](int source, int target, bool from_half, bool from_cosited, bool to_half,
                           bool to_cosited) {
      return AxisTable(AxisFilter({.source_pixels = source,
                                   .target_pixels = target,
                                   .source = {from_chroma && from_half, from_cosited ? 0 : 1},
                                   .target = {to_chroma && to_half, to_cosited ? 0 : 1},
                                   .filter = scaling_.filter,
                                   .over_sites = mixes_}));
    };
    return {std::move(channels),
            table(scaling_.crop.width, scaling_.place.width, from_.chroma_half_width,
                  cosited_across(from_siting_), to_.chroma_half_width, cosited_across(to_siting_)),
            table(scaling_.crop.height, scaling_.place.height, from_.chroma_half_height,
                  cosited_down(from_siting_), to_.chroma_half_height, cosited_down(to_siting_))};
  }

  const Scaling& scaling_;
  const PixelFormatInfo& from_;
  const PixelFormatInfo& to_;
  const Siting from_siting_, to_siting_;
  const bool mixes_;
};

/// The greatest code of 0 to 255 that is not above numerator / denominator.
template <typename Int>
std::uint8_t floor_to_byte(const Int& numerator, const Int& denominator) {
  int low = 0;
  int high = 256;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (numerator < denominator * std::int64_t{middle} ? high : low) = middle;
  }
  return static_cast<std::uint8_t>(low);
}

template <typename Byte>
BasicImageView<Byte> part_of(BasicImageView<Byte> image, const Rect& part) {
  const PixelFormatInfo& format = info(image.format);
  image.width = part.width;
  image.height = part.height;
  for (int i = 0; i < format.plane_count; ++i) {
    const PlaneLayout& layout = format.planes[static_cast<std::size_t>(i)];
    auto& plane = image.planes[static_cast<std::size_t>(i)];
    plane.data +=
        (part.y >> layout.log2_height_step) * plane.pitch +
        static_cast<std::ptrdiff_t>(part.x >> layout.log2_width_step) * layout.bytes_per_sample;
  }
  return image;
}

class ScaledReference final : public Converter {
 public:
  explicit ScaledReference(const Conversion& conversion)
      : conversion_(conversion), samples_(conversion) {}

  void run(const ConstImageView& source, const ImageView& target, int row_begin,
           int row_end) const override {
    const Scaling& scaling = *conversion_.scaling;
    fill_background(conversion_, target, row_begin, row_end);
    const auto from = channels(cropped(source, scaling.crop));
    const auto to = channels(cropped(target, scaling.place));
    for (std::size_t k = 0; k < (info(target.format).gray ? 1 : 3); ++k) {
      const bool half = to[k].half_height;
      const int begin = std::max(row_begin - scaling.place.y, 0) >> (half ? 1 : 0);
      const int end =
          std::min((row_end - scaling.place.y + (half ? 1 : 0)) >> (half ? 1 : 0), to[k].height);
      for (int y = begin; y < end; ++y) {
        for (int x = 0; x < to[k].width; ++x) to[k].at(x, y) = samples_.at(from, k, x, y);
      }
    }
  }

  const char* name() const override { return "scaled reference"; }

 private:
  const Conversion conversion_;
  const ScaledSamples samples_;
};

}  // namespace

AxisTable::AxisTable(const AxisFilter& filter) : source_samples_(filter.source_samples()) {
  rows_.reserve(static_cast<std::size_t>(filter.target_samples()));
  for (int i = 0; i < filter.target_samples(); ++i) {
    const AxisWeights weights = filter.at(i);
    rows_.push_back(
        {weights.first, numerators_.size(), weights.numerators.size(), weights.denominator});
    numerators_.insert(numerators_.end(), weights.numerators.begin(), weights.numerators.end());
    denominator_bits_ = std::max(denominator_bits_, bits_of(weights.denominator));
    most_taps_ = std::max(most_taps_, static_cast<int>(weights.numerators.size()));
  }
}

AxisTable::Row AxisTable::operator[](int i) const {
  const Place& place = rows_[static_cast<std::size_t>(i)];
  return {place.first, std::span(numerators_).subspan(place.begin, place.count), place.denominator};
}

ScaledSamples::ScaledSamples(const Conversion& conversion)
    : forms_(color_transform(conversion)),
      luma_(TermMaker(conversion).luma()),
      chroma_(TermMaker(conversion).chroma()) {
  for (std::size_t k = 0; k < 3; ++k) {
    int bits = bits_of(forms_[k].denominator);
    for (const std::int64_t c : forms_[k].coefficients) bits = std::max(bits, bits_of(c));
    bits = std::max(bits, bits_of(forms_[k].offset));
    for (const ScaleTerm& term : group(k).terms) {
      bits += term.across.denominator_bits() + term.down.denominator_bits();
    }
    // Besides a sample's 8 bits: the factor 2 of rounding, weights that add up to more than the
    // denominator where others are negative (less than twice), and three channels.
    narrow_[k] = bits + 8 + 1 + 2 + 2 < 127;
  }
}

std::uint8_t ScaledSamples::at(const std::array<ConstChannel, 3>& from, std::size_t channel, int x,
                               int y) const {
  if (group(channel).terms.empty()) return kNeutralChroma;
  return narrow_[channel] ? sum<Int128>(from, channel, x, y) : sum<WideInt>(from, channel, x, y);
}

template <typename Int>
std::uint8_t ScaledSamples::sum(const std::array<ConstChannel, 3>& from, std::size_t channel, int x,
                                int y) const {
  const LinearForm& form = forms_[channel];
  const std::vector<ScaleTerm>& terms = group(channel).terms;
  Int numerator(form.offset);
  Int denominator(form.denominator);
  const auto divide_by = [&](const ScaleTerm& term, Int& number) {
    number *= term.across[x].denominator;
    number *= term.down[y].denominator;
  };
  for (const ScaleTerm& term : terms) {
    divide_by(term, numerator);
    divide_by(term, denominator);
  }
  for (const ScaleTerm& term : terms) {
    const AxisTable::Row across = term.across[x];
    const AxisTable::Row down = term.down[y];
    Int of_term(0);
    for (const std::size_t k : term.channels) {
      Int of_channel(0);
      for (std::size_t j = 0; j < down.numerators.size(); ++j) {
        Int128 of_row = 0;
        for (std::size_t i = 0; i < across.numerators.size(); ++i) {
          of_row += Int128{across.numerators[i]} * from[k].at(across.first + static_cast<int>(i),
                                                              down.first + static_cast<int>(j));
        }
        Int weighted(of_row);
        weighted *= down.numerators[j];
        of_channel += weighted;
      }
      of_channel *= form.coefficients[k];
      of_term += of_channel;
    }
    for (const ScaleTerm& other : terms) {
      if (&other != &term) divide_by(other, of_term);
    }
    numerator += of_term;
  }
  // Rounded half up: floor((2 n + d) / 2 d).
  numerator *= 2;
  numerator += denominator;
  denominator *= 2;
  return floor_to_byte(numerator, denominator);
}

std::unique_ptr<const Converter> make_scaled_reference_converter(const Conversion& conversion) {
  return std::make_unique<ScaledReference>(conversion);
}

ConstImageView cropped(const ConstImageView& image, const Rect& crop) {
  return part_of(image, crop);
}
ImageView cropped(const ImageView& image, const Rect& crop) { return part_of(image, crop); }

void fill_background(const Conversion& conversion, const ImageView& target, int row_begin,
                     int row_end) {
  const Rect& place = conversion.scaling->place;
  if (place == Rect{0, 0, target.width, target.height}) return;
  const auto forms = color_transform({Matrix::kRgb, Range::kFull}, conversion.target_color);
  const auto& [red, green, blue] = conversion.scaling->background;
  const auto to = channels(target);
  for (std::size_t k = 0; k < (info(target.format).gray ? 1 : 3); ++k) {
    const std::uint8_t code = forms[k].rounding_for_scale(1).floor_to_byte({red, green, blue});
    const int across = to[k].half_width ? 1 : 0;
    const int down = to[k].half_height ? 1 : 0;
    const int left = place.x >> across;
    const int right = (place.x + place.width + across) >> across;
    const int top = place.y >> down;
    const int bottom = (place.y + place.height + down) >> down;
    for (int y = row_begin >> down; y < (row_end + down) >> down; ++y) {
      const bool beside = y >= top && y < bottom;
      for (int x = 0; x < to[k].width; ++x) {
        if (beside && x == left) x = right;
        if (x < to[k].width) to[k].at(x, y) = code;
      }
    }
  }
}

}  // namespace framelane
