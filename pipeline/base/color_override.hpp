#pragma once

#include <optional>

#include "kernels/color_spec.hpp"

namespace framelane {

/// Colour as the configuration sets it: of a source, in place of what the source says, or the
/// target of a conversion. An empty field is "auto".
struct ColorOverride {
  std::optional<Matrix> matrix;
  std::optional<Range> range;
  std::optional<Siting> siting;

  friend bool operator==(const ColorOverride&, const ColorOverride&) = default;
};

}  // namespace framelane
