#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace framelane {

/// Where a file that is still written may be cut so that nothing in it is half: its beginning, the
/// end of its header, and the ends of the packets or fragments that were written. Not thread-safe.
class CutPoints {
 public:
  /// All that was written before `position` is whole. The file has at least `reached` bytes by now,
  /// so that only the last point before those is remembered.
  void add(std::int64_t position, std::int64_t reached);
  /// The file is complete: from now on it is not cut.
  void complete() { points_.clear(); }
  /// The last point in a file of this size. Nothing if the file is complete.
  std::optional<std::int64_t> last_in(std::int64_t size) const;

 private:
  std::vector<std::int64_t> points_{0};  // ascending
};

}  // namespace framelane
