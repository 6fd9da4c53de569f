#pragma once

#include <memory>

#include "kernels/conversion.hpp"
#include "kernels/converter.hpp"

namespace framelane {

/// A converter from YUV to YUV in which no sample of the target depends on two channels: planes are
/// laid out anew, chroma is averaged, or each sample changes its range. Whole rows are converted in
/// one pass, with 8-bit and 16-bit arithmetic that gives the reference's bytes. Null for other
/// conversions, and if Highway has only its one-lane fallback.
std::unique_ptr<const Converter> make_remap_converter(const Conversion& conversion);

}  // namespace framelane
