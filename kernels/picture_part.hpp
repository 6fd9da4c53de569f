#pragma once

#include <array>
#include <cstdint>

#include "kernels/channel.hpp"
#include "kernels/conversion.hpp"

// Parts of pictures: what is taken of a source, how it is turned, and what is around it in a
// target.

namespace framelane {

/// The part `crop` of a picture, which begins at whole samples of each plane.
ConstImageView cropped(const ConstImageView& image, const Rect& crop);
ImageView cropped(const ImageView& image, const Rect& crop);

/// The channels as they are read in a turned picture. Their steps may be negative, or a pitch.
std::array<ConstChannel, 3> turned(std::array<ConstChannel, 3> channels,
                                   const Orientation& orientation);

/// The codes of scaling.background in the target's colour.
std::array<std::uint8_t, 3> background_codes(const Conversion& conversion);

/// Gives samples [begin, end) of a row this code.
void fill_run(const Channel& channel, int y, int begin, int end, std::uint8_t code);

/// Fills what lies outside `place` in rows [row_begin, row_end) with these codes.
void fill_background(const Rect& place, const std::array<std::uint8_t, 3>& codes,
                     const ImageView& target, int row_begin, int row_end);

}  // namespace framelane
