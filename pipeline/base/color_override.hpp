#pragma once

#include <optional>

#include "kernels/color_spec.hpp"

namespace framelane {

/// Overrides of what a source says about its colour, or targets of a conversion; an empty field
/// is "auto".
struct ColorOverride {
  std::optional<Matrix> matrix;
  std::optional<Range> range;
  std::optional<Siting> siting;
};

}  // namespace framelane
