#pragma once

#include <memory>

#include "kernels/conversion.hpp"
#include "kernels/converter.hpp"

namespace framelane {

/// True for full-range BGRA, RGBA, ARGB or ABGR to I420 or NV12: what capture devices give. These
/// have their own implementation, which keeps the four bytes of a pixel together.
bool is_rgb_to_yuv420(const Conversion& conversion);

/// Requires is_rgb_to_yuv420(conversion) and !why_unsupported(conversion). Uses the best
/// instruction set of this CPU; all give the same bytes. Null if Highway has only its one-lane
/// fallback.
std::unique_ptr<const Converter> make_rgb_to_yuv420_converter(const Conversion& conversion,
                                                              Stores stores);

}  // namespace framelane
