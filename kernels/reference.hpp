#pragma once

#include <memory>

#include "kernels/conversion.hpp"
#include "kernels/converter.hpp"
#include "kernels/image_view.hpp"

namespace framelane {

/// The definition of right, in plain 64-bit integers; every other implementation equals it in every
/// byte. Each output sample is the exact real-valued result rounded half up once and clamped to
/// 0..255; chroma filters run unrounded over all contributing pixels (sitings and interpolation as
/// in docs/colour.md), edges repeat the last pixel, alpha is ignored.
///
/// Requires: !why_unsupported(conversion), and views that match it in format and size and do not
/// overlap. Writes only the pixels of `target`, never its padding. Thread-safe; throws
/// std::bad_alloc alone.
void convert_reference(const Conversion& conversion, const ConstImageView& source,
                       const ImageView& target);

/// The same behind the Converter interface, for conversions that have no fast path.
std::unique_ptr<const Converter> make_reference_converter(const Conversion& conversion);

}  // namespace framelane
