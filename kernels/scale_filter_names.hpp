#pragma once

#include <array>
#include <string_view>

#include "kernels/axis_filter.hpp"

namespace framelane {

/// What users and programs call the filters, in the order of ScaleFilter.
inline constexpr std::array<std::string_view, 4> kScaleFilterNames{"bicubic", "spline36",
                                                                   "bilinear", "area"};

}  // namespace framelane
