#pragma once

#include "kernels/cuda/arithmetic.cuh"
#include "kernels/cuda/cuda_converter.hpp"
#include "kernels/cuda/samples.cuh"

// Every conversion, exactly. A thread converts one chroma sample and its block of luma samples.
// Layouts and filters are parameters, which is not the fastest way; but such frames come over the
// bus, which is much slower still.

namespace framelane::cuda {

/// How chroma is subsampled along each axis, and where its samples sit.
struct Subsampling {
  bool half_width, half_height;
  bool cosited_across, cosited_down;
};

/// The filters of kernels/chroma_taps.hpp, always with three samples: where fewer count, weights
/// are 0.
struct Taps3 {
  int index[3];
  int weight[3];
};

FRAMELANE_HD Taps3 same_place(int i) { return {{i, i, i}, {4, 0, 0}}; }

FRAMELANE_HD Taps3 downsampled(int i, int size, bool half, bool cosited) {
  if (!half) return same_place(i);
  const int next = at_most(2 * i + 1, size - 1);
  if (!cosited) return {{2 * i, next, next}, {2, 2, 0}};
  return {{at_least(2 * i - 1, 0), 2 * i, next}, {1, 2, 1}};
}

FRAMELANE_HD Taps3 interpolated(int i, int size, bool half, bool cosited) {
  if (!half) return same_place(i);
  const int here = i / 2;
  const bool odd = i % 2 != 0;
  if (cosited && !odd) return same_place(here);
  if (odd) {
    const int next = at_most(here + 1, size - 1);
    return {{here, next, next}, {cosited ? 2 : 3, cosited ? 2 : 1, 0}};
  }
  return {{at_least(here - 1, 0), here, here}, {1, 3, 0}};
}

struct GeneralConversion {
  // The scales of the forms' inputs: of a sample at a luma site, and of one filtered over sites.
  static constexpr int kSiteScale = 16;
  static constexpr int kFilteredScale = 256;

  Form forms[3];
  Subsampling source, target;
};

/// kMixed: target samples depend on all three channels; otherwise each depends on its own channel
/// only.
template <bool kMixed>
struct General : GeneralConversion {
  Samples2d<const std::uint8_t> from[3];
  Samples2d<std::uint8_t> to[3];
  int row_begin, row_end;

  General(const GeneralConversion& conversion, const CudaFrame& frame, int begin, int end)
      : GeneralConversion(conversion), row_begin(begin), row_end(end) {
    locate(frame.source, from);
    locate(frame.target, to);
  }

  FRAMELANE_HD void operator()(ThreadIndex thread) const {
    const int block_width = target.half_width ? 2 : 1;
    const int block_height = target.half_height ? 2 : 1;
    const int x = static_cast<int>(thread.x) * block_width;
    const int y = row_begin + static_cast<int>(thread.y) * block_height;
    for (int j = y; j < at_most(y + block_height, row_end); ++j) {
      for (int i = x; i < at_most(x + block_width, to[0].width); ++i) convert_luma(i, j);
    }
    if (to[1].data == nullptr || x >= to[0].width) return;
    convert_chroma(x / block_width, y / block_height);
  }

 private:
  FRAMELANE_HD void convert_luma(int x, int y) const {
    if constexpr (kMixed) {
      int samples[3];
      site(x, y, samples);
      to[0].at(x, y) = forms[0](samples[0], samples[1], samples[2]);
    } else {
      to[0].at(x, y) = forms[0].of_one(0, from[0].at(x, y) * kSiteScale);
    }
  }

  FRAMELANE_HD void convert_chroma(int x, int y) const {
    if constexpr (kMixed) {
      const Taps3 across = downsampled(x, to[0].width, target.half_width, target.cosited_across);
      const Taps3 down = downsampled(y, to[0].height, target.half_height, target.cosited_down);
      int sums[3] = {0, 0, 0};
      FRAMELANE_UNROLL
      for (int j = 0; j < 3; ++j) {
        FRAMELANE_UNROLL
        for (int i = 0; i < 3; ++i) {
          const int weight = across.weight[i] * down.weight[j];
          if (weight == 0) continue;
          int samples[3];
          site(across.index[i], down.index[j], samples);
          for (int k = 0; k < 3; ++k) sums[k] += weight * samples[k];
        }
      }
      for (int k = 1; k < 3; ++k) to[k].at(x, y) = forms[k](sums[0], sums[1], sums[2]);
    } else if (from[1].data == nullptr) {
      for (int k = 1; k < 3; ++k) to[k].at(x, y) = 128;  // gray has neutral chroma in either range
    } else {
      const Taps3 across = downsampled(x, from[1].width, target.half_width && !source.half_width,
                                       target.cosited_across);
      const Taps3 down = downsampled(y, from[1].height, target.half_height && !source.half_height,
                                     target.cosited_down);
      for (int k = 1; k < 3; ++k) {
        to[k].at(x, y) = forms[k].of_one(k, filter(from[k], across, down) * kSiteScale);
      }
    }
  }

  FRAMELANE_HD static int filter(const Samples2d<const std::uint8_t>& channel, const Taps3& across,
                                 const Taps3& down) {
    int sum = 0;
    FRAMELANE_UNROLL
    for (int j = 0; j < 3; ++j) {
      FRAMELANE_UNROLL
      for (int i = 0; i < 3; ++i) {
        const int weight = across.weight[i] * down.weight[j];
        if (weight != 0) sum += weight * channel.at(across.index[i], down.index[j]);
      }
    }
    return sum;
  }

  /// All three samples at a luma site. Subsampled chroma is interpolated.
  FRAMELANE_HD void site(int x, int y, int (&samples)[3]) const {
    samples[0] = from[0].at(x, y) * kSiteScale;
    if (!source.half_width && !source.half_height) {
      samples[1] = from[1].at(x, y) * kSiteScale;
      samples[2] = from[2].at(x, y) * kSiteScale;
      return;
    }
    const Taps3 across = interpolated(x, from[1].width, source.half_width, source.cosited_across);
    const Taps3 down = interpolated(y, from[1].height, source.half_height, source.cosited_down);
    samples[1] = filter(from[1], across, down);
    samples[2] = filter(from[2], across, down);
  }
};

GeneralConversion general_conversion(const Conversion& conversion);

}  // namespace framelane::cuda
