#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/converter.hpp"
#include "kernels/scaling.hpp"

namespace framelane {

/// Brings planes of bytes, whose rows follow one another, from one size to another.
class PlaneScaler {
 public:
  /// Why planes cannot be scaled so; nothing if they can.
  static std::optional<std::string> why_not(const PictureSize& from, const PictureSize& to);
  /// Requires !why_not(from, to).
  PlaneScaler(const PictureSize& from, const PictureSize& to, ScaleFilter filter);

  std::vector<std::uint8_t> scaled(const std::vector<std::uint8_t>& plane) const;

 private:
  const PictureSize from_;
  const PictureSize to_;
  const std::unique_ptr<const Converter> converter_;
};

}  // namespace framelane
