#pragma once

#include <array>
#include <cstdint>

#include "kernels/color_spec.hpp"

namespace framelane {

/// The formula of one YUV channel, in code values, for full-range 8-bit R, G and B:
///
///     channel = zero + (rgb[0] * R + rgb[1] * G + rgb[2] * B) / denominator
///
/// The zero is 128 for chroma; for luma it is 16 in limited range and 0 in full range. The integers
/// follow from the equations of the recommendations; the code under test did not compute them.
struct IntegerForm {
  std::array<std::int64_t, 3> rgb;
  std::int64_t denominator;

  std::int64_t numerator(int r, int g, int b) const { return rgb[0] * r + rgb[1] * g + rgb[2] * b; }
};

struct IntegerMatrix {
  ColorSpec color;
  std::array<IntegerForm, 3> channels;  ///< Y, U, V
};

inline constexpr IntegerMatrix kIntegerMatrices[] = {
    {{Matrix::kBt601, Range::kLimited},
     {{{{21827, 42851, 8322}, 85000},
       {{-16744, -32872, 49616}, 112965},
       {{78512, -65744, -12768}, 178755}}}},
    {{Matrix::kBt709, Range::kLimited},
     {{{{77599, 261048, 26353}, 425000},
       {{-119056, -400512, 519568}, 1182945},
       {{440944, -400512, -40432}, 1003935}}}},
    {{Matrix::kBt2020, Range::kLimited},
     {{{{191771, 494940, 43289}, 850000},
       {{-294224, -759360, 1053584}, 2398785},
       {{825776, -759360, -66416}, 1880115}}}},
    {{Matrix::kBt601, Range::kFull},
     {{{{299, 587, 114}, 1000}, {{-299, -587, 886}, 1772}, {{701, -587, -114}, 1402}}}},
    {{Matrix::kBt709, Range::kFull},
     {{{{2126, 7152, 722}, 10000}, {{-2126, -7152, 9278}, 18556}, {{7874, -7152, -722}, 15748}}}},
    {{Matrix::kBt2020, Range::kFull},
     {{{{2627, 6780, 593}, 10000}, {{-2627, -6780, 9407}, 18814}, {{7373, -6780, -593}, 14746}}}}};

}  // namespace framelane
