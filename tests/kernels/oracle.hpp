#pragma once

#include <cstdint>
#include <vector>

#include "kernels/conversion.hpp"
#include "kernels/image_view.hpp"

namespace framelane {

/// What `conversion` must give, worked out the slow way from the textbook formulas: whole planes of
/// 113-bit floating-point signals, chroma positions as real numbers. Shares nothing with the code
/// under test but the views. Returns the target's pixels in TestImage::pixels order.
///
/// Exact, because every result is a fraction with a denominator below 1.3e16 (the common
/// denominator of a matrix change, 4.7e13, times 256 for the filters): it either is a tie or is
/// 3e-17 away from one, while the arithmetic errs by less than 1e-28.
std::vector<std::uint8_t> convert_oracle(const Conversion& conversion,
                                         const ConstImageView& source);

}  // namespace framelane
