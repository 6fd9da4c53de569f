#pragma once

#include <cstdint>
#include <vector>

#include "kernels/conversion.hpp"
#include "kernels/image_view.hpp"

namespace framelane {

/// The right result of `conversion`, computed slowly from the textbook formulas: signals are whole
/// planes of floating-point numbers with 113 bits, and chroma positions are real numbers. It shares
/// only the image views with the code under test. Returns the target's pixels in the order of
/// TestImage::pixels.
///
/// Exact, because every result is a fraction with a denominator below 1.3e16 (the common
/// denominator of a matrix change, 4.7e13, times 256 for the filters): it is either a tie or at
/// least 3e-17 away from one, and the error of the arithmetic is below 1e-28.
std::vector<std::uint8_t> convert_oracle(const Conversion& conversion,
                                         const ConstImageView& source);

}  // namespace framelane
