#include "pipeline/output/cut_points.hpp"

#include <algorithm>

namespace framelane {

void CutPoints::add(Point point, std::int64_t reached) {
  if (points_.empty() || point.position <= points_.back().position) return;
  points_.push_back(point);
  const auto beyond = std::ranges::upper_bound(points_, reached, {}, &Point::position);
  if (beyond - points_.begin() > 1) points_.erase(points_.begin(), beyond - 1);
}

std::optional<CutPoints::Point> CutPoints::last_in(std::int64_t size) const {
  const auto beyond = std::ranges::upper_bound(points_, size, {}, &Point::position);
  if (beyond == points_.begin()) return std::nullopt;
  return *(beyond - 1);
}

}  // namespace framelane
