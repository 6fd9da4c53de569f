#pragma once

#include <memory>

#include "kernels/conversion.hpp"
#include "kernels/converter.hpp"

namespace framelane {

/// Any supported conversion, tile by tile and row by row over SIMD kernels (row_kernels.hpp): the
/// channels of a row are taken apart, chroma is filtered unrounded, FixedForm gives the codes, and
/// they are laid out as the target wants them. Chooses the best instruction set of the CPU it runs
/// on; every choice gives the reference's bytes. Null where there is none.
std::unique_ptr<const Converter> make_row_converter(const Conversion& conversion);

}  // namespace framelane
