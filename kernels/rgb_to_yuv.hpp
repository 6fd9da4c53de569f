#pragma once

#include <memory>

#include "kernels/conversion.hpp"
#include "kernels/converter.hpp"

namespace framelane {

/// True for full-range RGB, of three or four bytes a pixel, to I420, NV12, I422 or I444. These have
/// their own implementation, which keeps the bytes of a pixel together.
bool is_rgb_to_yuv(const Conversion& conversion);

/// Requires is_rgb_to_yuv(conversion) and !why_unsupported(conversion). Uses the best
/// instruction set of this CPU; all give the same bytes. Null if Highway has only its one-lane
/// fallback.
std::unique_ptr<const Converter> make_rgb_to_yuv_converter(const Conversion& conversion,
                                                           Stores stores);

}  // namespace framelane
