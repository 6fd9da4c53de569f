// Loops on one core, in the CPU's best instruction set (simd_level() says which). Any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/image_view.hpp"

namespace framelane::bench {

/// The same bytes as convert_classic, with SIMD.
void convert_classic_simd(const ConstImageView& source, const ImageView& target);

/// The sum of all numbers, added in no defined order.
float sum_floats(const float* numbers, std::size_t count);

/// The exclusive-or of all words, which costs almost nothing beyond reading them.
std::uint32_t read_words(const std::uint32_t* words, std::size_t count);

}  // namespace framelane::bench
