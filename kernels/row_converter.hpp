#pragma once

#include <memory>

#include "kernels/conversion.hpp"
#include "kernels/converter.hpp"

namespace framelane {

/// A converter for any supported conversion, which works on one row of a tile at a time with the
/// steps of row_kernels.hpp: it separates the channels, filters chroma without rounding, computes
/// the codes with FixedForm, and lays them out as the target needs them. Uses the best instruction
/// set of this CPU; all give the reference's bytes. Null if Highway has only its one-lane fallback.
std::unique_ptr<const Converter> make_row_converter(const Conversion& conversion);

}  // namespace framelane
