#pragma once

#include <array>
#include <cstdint>

#include "kernels/color_spec.hpp"
#include "kernels/conversion.hpp"

namespace framelane {

/// Three samples as integers, each multiplied by a scale that the context defines.
using Samples = std::array<std::int64_t, 3>;

/// An exact affine function of three samples with rational coefficients over one denominator:
/// (coefficients · s + offset) / denominator.
struct LinearForm {
  std::array<std::int64_t, 3> coefficients{};
  std::int64_t offset = 0;
  std::int64_t denominator = 1;

  /// A form for samples that are scaled by `scale`. Its value rounded down is this form's value
  /// rounded half up.
  LinearForm rounding_for_scale(int scale) const;

  /// The value, rounded down and clamped to 0..255. Samples up to 255 * 256 do not overflow.
  std::uint8_t floor_to_byte(const Samples& samples) const;
};

/// Y, U and V of `target` as functions of the codes R, G, B (matrix kRgb) or Y, U, V of `source`,
/// without rounding or clamping. Derived in rational arithmetic from Kr and Kb:
/// BT.601-7 section 2.5, BT.709-6 items 3.2 and 3.3, BT.2020-2 table 4 (non-constant luminance);
/// quantisation as in BT.601-7 section 2.5.3, BT.709-6 item 3.4 and H.273 clause 8.3 (full range).
/// Requires target.matrix != kRgb. If the matrices are equal, each form depends on its own channel
/// alone.
std::array<LinearForm, 3> color_transform(const ColorSpec& source, const ColorSpec& target);

/// The same for a conversion. A gray source has no matrix and is given the target's.
std::array<LinearForm, 3> color_transform(const Conversion& conversion);

/// R'G'B' in full range as Y, U and V of `color`, rounded half up. Requires color.matrix != kRgb.
std::array<std::uint8_t, 3> codes_of(const std::array<std::uint8_t, 3>& rgb,
                                     const ColorSpec& color);

/// True if a sample of the target depends on more than one channel of the source.
bool mixes_channels(const Conversion& conversion);

}  // namespace framelane
