#pragma once

#include <array>
#include <cstdint>

#include "kernels/color_spec.hpp"
#include "kernels/conversion.hpp"

namespace framelane {

/// Integers s standing for samples s / scale, where the scale is known from the context.
using Samples = std::array<std::int64_t, 3>;

/// An exact affine function of three samples with rational coefficients over one denominator:
/// (coefficients · s + offset) / denominator.
struct LinearForm {
  std::array<std::int64_t, 3> coefficients{};
  std::int64_t offset = 0;
  std::int64_t denominator = 1;

  /// The form that takes samples scaled by `scale` and, rounded down, gives this one's value
  /// rounded half up.
  LinearForm rounding_for_scale(int scale) const;

  /// The value rounded down and clamped to 0..255. Samples up to 255 * 256 cannot overflow it.
  std::uint8_t floor_to_byte(const Samples& samples) const;
};

/// What Y, U and V of `target` are in terms of the codes R, G, B (matrix kRgb) or Y, U, V of
/// `source`, without rounding or clamping. Derived in rational arithmetic from Kr and Kb:
/// BT.601-7 section 2.5, BT.709-6 items 3.2 and 3.3, BT.2020-2 table 4 (non-constant luminance);
/// quantisation as in BT.601-7 section 2.5.3, BT.709-6 item 3.4 and H.273 clause 8.3 (full range).
/// Requires target.matrix != kRgb. With equal matrices the result is diagonal.
std::array<LinearForm, 3> color_transform(const ColorSpec& source, const ColorSpec& target);

/// The same for a conversion. Gray has no matrix of its own and takes the target's.
std::array<LinearForm, 3> color_transform(const Conversion& conversion);

/// Whether the target's samples depend on more than one channel each; otherwise color_transform is
/// diagonal.
bool mixes_channels(const Conversion& conversion);

}  // namespace framelane
