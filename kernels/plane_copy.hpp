#pragma once

#include <memory>

#include "kernels/converter.hpp"

namespace framelane {

/// A converter that copies, for any conversion with is_identity(conversion).
std::unique_ptr<const Converter> make_plane_copy();

}  // namespace framelane
