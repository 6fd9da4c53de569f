#pragma once

#include <memory>

#include "kernels/conversion.hpp"
#include "kernels/converter.hpp"

namespace framelane {

/// True when every target sample is a copy of a source sample, or 128 where gray gets chroma:
/// planar to semi-planar, packed 4:2:2 to planar, dropping or adding neutral chroma, identity.
bool is_relayout(const Conversion& conversion);

/// Requires is_relayout(conversion) and !why_unsupported(conversion).
std::unique_ptr<const Converter> make_relayout_converter(const Conversion& conversion);

}  // namespace framelane
