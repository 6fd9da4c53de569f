#include "kernels/reference.hpp"

#include <array>
#include <cassert>

#include "kernels/channel.hpp"
#include "kernels/chroma_taps.hpp"
#include "kernels/linear_transform.hpp"
#include "kernels/plane_copy.hpp"
#include "kernels/scaled_reference.hpp"

namespace framelane {
namespace {

// Every filter below is separable, with weights that add up to 4 in each direction. So a sample at
// a luma site is scaled by 16, and one that is filtered over sites by another 16.
constexpr int kSiteScale = Taps::kScale * Taps::kScale;
constexpr int kFilteredScale = kSiteScale * Taps::kScale * Taps::kScale;

int filter(const ConstChannel& channel, const Taps& across, const Taps& down) {
  int sum = 0;
  for (std::size_t j = 0; j < down.count; ++j) {
    for (std::size_t i = 0; i < across.count; ++i) {
      sum += across.weight[i] * down.weight[j] * channel.at(across.index[i], down.index[j]);
    }
  }
  return sum;
}

class ReferenceConverter final : public Converter {
 public:
  explicit ReferenceConverter(const Conversion& conversion)
      : conversion_(conversion), per_channel_(!mixes_channels(conversion)) {
    const auto forms = color_transform(conversion);
    luma_ = forms[0].rounding_for_scale(kSiteScale);
    u_ = forms[1].rounding_for_scale(kFilteredScale);
    v_ = forms[2].rounding_for_scale(kFilteredScale);
  }

  void run(const ConstImageView& source, const ImageView& target, int row_begin,
           int row_end) const override {
    const auto from = channels(source);
    const auto to = channels(target);
    for (int y = row_begin; y < row_end; ++y) {
      for (int x = 0; x < to[0].width; ++x) to[0].at(x, y) = luma_.floor_to_byte(site(from, x, y));
    }
    if (info(target.format).gray) return;
    const int chroma_begin = to[1].half_height ? row_begin / 2 : row_begin;
    const int chroma_end = to[1].half_height ? (row_end + 1) / 2 : row_end;
    for (int y = chroma_begin; y < chroma_end; ++y) {
      for (int x = 0; x < to[1].width; ++x) {
        const Samples samples =
            per_channel_ ? filtered_chroma(from, to[1], x, y) : filtered_sites(from, to[1], x, y);
        to[1].at(x, y) = u_.floor_to_byte(samples);
        to[2].at(x, y) = v_.floor_to_byte(samples);
      }
    }
  }

  const char* name() const override { return "reference"; }

 private:
  using Source = std::array<ConstChannel, 3>;

  Taps downsampling_across(int x, int size) const {
    return downsampling_taps(x, size, cosited_across(conversion_.target_color.siting));
  }
  Taps downsampling_down(int y, int size) const {
    return downsampling_taps(y, size, cosited_down(conversion_.target_color.siting));
  }

  // A channel's value at a luma site, interpolated if the channel is subsampled.
  int at_site(const ConstChannel& channel, int x, int y) const {
    if (!channel.half_width && !channel.half_height) return channel.at(x, y) * kSiteScale;
    const Siting siting = conversion_.source_color.siting;
    const Taps across = channel.half_width
                            ? interpolating_taps(x, channel.width, cosited_across(siting))
                            : identity_taps(x);
    const Taps down = channel.half_height
                          ? interpolating_taps(y, channel.height, cosited_down(siting))
                          : identity_taps(y);
    return filter(channel, across, down);
  }

  Samples site(const Source& from, int x, int y) const {
    if (per_channel_) return {at_site(from[0], x, y), 0, 0};
    return {at_site(from[0], x, y), at_site(from[1], x, y), at_site(from[2], x, y)};
  }

  // For chroma from RGB, or from another matrix: filters all three samples at the luma sites that
  // contribute.
  Samples filtered_sites(const Source& from, const Channel& to, int x, int y) const {
    const Taps across =
        to.half_width ? downsampling_across(x, conversion_.width) : identity_taps(x);
    const Taps down = to.half_height ? downsampling_down(y, conversion_.height) : identity_taps(y);
    Samples sums{};
    for (std::size_t j = 0; j < down.count; ++j) {
      for (std::size_t i = 0; i < across.count; ++i) {
        const int weight = across.weight[i] * down.weight[j];
        const Samples samples = site(from, across.index[i], down.index[j]);
        for (std::size_t k = 0; k < 3; ++k) sums[k] += weight * samples[k];
      }
    }
    return sums;
  }

  // For chroma from the same matrix: filters on the channel's own grid, not at luma sites.
  Samples filtered_chroma(const Source& from, const Channel& to, int x, int y) const {
    const Taps across = to.half_width && !from[1].half_width ? downsampling_across(x, from[1].width)
                                                             : identity_taps(x);
    const Taps down = to.half_height && !from[1].half_height ? downsampling_down(y, from[1].height)
                                                             : identity_taps(y);
    return {0, kSiteScale * filter(from[1], across, down),
            kSiteScale * filter(from[2], across, down)};
  }

  Conversion conversion_;
  bool per_channel_;  // each target channel depends on the same source channel alone
  LinearForm luma_, u_, v_;
};

}  // namespace

std::unique_ptr<const Converter> make_reference_converter(const Conversion& conversion) {
  assert(!why_unsupported(conversion));
  if (is_identity(conversion)) return make_plane_copy();
  if (conversion.scaling) return make_scaled_reference_converter(conversion);
  return std::make_unique<ReferenceConverter>(conversion);
}

void convert_reference(const Conversion& conversion, const ConstImageView& source,
                       const ImageView& target) {
  assert(!why_unsupported(conversion));
  make_reference_converter(conversion)->run(source, target, 0, conversion.target_size().height);
}

}  // namespace framelane
