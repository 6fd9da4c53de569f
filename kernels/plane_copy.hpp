#pragma once

#include <memory>

#include "kernels/converter.hpp"

namespace framelane {

/// For conversions where is_identity(conversion).
std::unique_ptr<const Converter> make_plane_copy();

}  // namespace framelane
