#pragma once

#include <memory>

#include "kernels/conversion.hpp"
#include "kernels/converter.hpp"
#include "kernels/image_view.hpp"

namespace framelane {

/// Defines the right result, in plain 64-bit integers: every other implementation gives the same
/// bytes. Each output sample is the exact real-valued result, rounded half up once and clamped to
/// 0..255. Chroma filters do not round, and take all pixels that contribute (sitings and
/// interpolation as in docs/colour.md). Edges repeat the last pixel. Alpha is ignored.
///
/// Requires !why_unsupported(conversion), and views that have the conversion's formats and size and
/// do not overlap. Writes the pixels of `target`, never its padding. Any thread; throws only
/// std::bad_alloc.
void convert_reference(const Conversion& conversion, const ConstImageView& source,
                       const ImageView& target);

/// convert_reference as a Converter, for conversions that have no fast path.
std::unique_ptr<const Converter> make_reference_converter(const Conversion& conversion);

}  // namespace framelane
