#pragma once

#include <memory>

#include "kernels/conversion.hpp"
#include "kernels/converter.hpp"

namespace framelane {

/// Full-range BGRA, RGBA, ARGB or ABGR to I420 or NV12: what a capture gives, on a path of
/// its own that keeps pixels whole.
bool is_rgb_to_yuv420(const Conversion& conversion);

/// Requires is_rgb_to_yuv420(conversion) and !why_unsupported(conversion). Chooses the best
/// instruction set of the CPU it runs on; every choice gives the same bytes.
std::unique_ptr<const Converter> make_rgb_to_yuv420_converter(const Conversion& conversion,
                                                              Stores stores);

}  // namespace framelane
