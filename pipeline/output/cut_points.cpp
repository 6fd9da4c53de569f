#include "pipeline/output/cut_points.hpp"

#include <algorithm>

namespace framelane {

void CutPoints::add(std::int64_t position, std::int64_t reached) {
  if (points_.empty() || position <= points_.back()) return;
  points_.push_back(position);
  const auto beyond = std::upper_bound(points_.begin(), points_.end(), reached);
  if (beyond - points_.begin() > 1) points_.erase(points_.begin(), beyond - 1);
}

std::optional<std::int64_t> CutPoints::last_in(std::int64_t size) const {
  const auto beyond = std::upper_bound(points_.begin(), points_.end(), size);
  if (beyond == points_.begin()) return std::nullopt;
  return *(beyond - 1);
}

}  // namespace framelane
