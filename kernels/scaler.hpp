#pragma once

#include <memory>

#include "kernels/converter.hpp"

namespace framelane {

/// A converter for any conversion to another size. Null if Highway has only its one-lane fallback.
std::unique_ptr<const Converter> make_scaler(const Conversion& conversion);

}  // namespace framelane
