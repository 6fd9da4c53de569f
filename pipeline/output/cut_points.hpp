#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace framelane {

/// Where a file that is still written may be cut so that nothing in it is half: its beginning, the
/// end of its header, and the ends of the packets or fragments that were written. Not thread-safe.
class CutPoints {
 public:
  struct Point {
    std::int64_t position;
    std::uint64_t packets;  ///< that lie before it
  };

  /// All that was written before the point is whole. The file has at least `reached` bytes by now,
  /// so that only the last point before those is remembered.
  void add(Point point, std::int64_t reached);
  /// The file is complete: from now on it is not cut.
  void complete() { points_.clear(); }
  /// The last point in a file of this size. Nothing if the file is complete.
  std::optional<Point> last_in(std::int64_t size) const;

 private:
  std::vector<Point> points_{{0, 0}};  // ascending
};

}  // namespace framelane
