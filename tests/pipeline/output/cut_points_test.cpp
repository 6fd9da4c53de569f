// Not built for ThreadSanitizer: one thread uses it.
#include "pipeline/output/cut_points.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>

namespace framelane {
namespace {

/// Where the last point in a file of this size is.
std::optional<std::int64_t> last_in(const CutPoints& points, std::int64_t size) {
  const auto point = points.last_in(size);
  return point ? std::optional(point->position) : std::nullopt;
}

TEST(CutPointsTest, AFileWithoutAHeaderIsCutToNothing) {
  EXPECT_EQ(last_in(CutPoints(), 0), 0);
  EXPECT_EQ(last_in(CutPoints(), 20), 0);
}

TEST(CutPointsTest, TheLastPointInTheFileCounts) {
  CutPoints points;
  for (const int end : {100, 250, 400}) points.add({end, 0}, 0);
  EXPECT_EQ(last_in(points, 99), 0);
  EXPECT_EQ(last_in(points, 100), 100);
  EXPECT_EQ(last_in(points, 399), 250);
  EXPECT_EQ(last_in(points, 10'000), 400);
}

TEST(CutPointsTest, APointTellsHowManyPacketsLieBeforeIt) {
  CutPoints points;
  points.add({100, 0}, 0);  // a header
  points.add({250, 3}, 0);
  points.add({250, 4}, 0);  // the muxer holds one back
  EXPECT_EQ(points.last_in(120)->packets, 0u);
  EXPECT_EQ(points.last_in(300)->packets, 3u);
}

TEST(CutPointsTest, PointsThatTheFileHasPassedAreForgottenButTheLast) {
  CutPoints points;
  for (const int end : {100, 250, 400}) points.add({end, 0}, 260);
  EXPECT_EQ(last_in(points, 249), std::nullopt);
  EXPECT_EQ(last_in(points, 300), 250);
}

TEST(CutPointsTest, APositionThatDoesNotRiseIsNoNewPoint) {
  CutPoints points;
  points.add({100, 0}, 0);
  points.add({100, 0}, 0);
  points.add({40, 0}, 0);
  EXPECT_EQ(last_in(points, 60), 0);
  EXPECT_EQ(last_in(points, 100), 100);
}

TEST(CutPointsTest, ACompleteFileIsNotCut) {
  CutPoints points;
  points.add({100, 0}, 0);
  points.complete();
  points.add({200, 0}, 0);
  EXPECT_EQ(last_in(points, 1000), std::nullopt);
}

}  // namespace
}  // namespace framelane
