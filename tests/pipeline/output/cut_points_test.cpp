// Not built for ThreadSanitizer: one thread uses it.
#include "pipeline/output/cut_points.hpp"

#include <gtest/gtest.h>

namespace framelane {
namespace {

TEST(CutPointsTest, AFileWithoutAHeaderIsCutToNothing) {
  EXPECT_EQ(CutPoints().last_in(0), 0);
  EXPECT_EQ(CutPoints().last_in(20), 0);
}

TEST(CutPointsTest, TheLastPointInTheFileCounts) {
  CutPoints points;
  for (const int end : {100, 250, 400}) points.add(end, 0);
  EXPECT_EQ(points.last_in(99), 0);
  EXPECT_EQ(points.last_in(100), 100);
  EXPECT_EQ(points.last_in(399), 250);
  EXPECT_EQ(points.last_in(10'000), 400);
}

TEST(CutPointsTest, PointsThatTheFileHasPassedAreForgottenButTheLast) {
  CutPoints points;
  for (const int end : {100, 250, 400}) points.add(end, 260);
  EXPECT_EQ(points.last_in(249), std::nullopt);
  EXPECT_EQ(points.last_in(300), 250);
}

TEST(CutPointsTest, APositionThatDoesNotRiseIsNoNewPoint) {
  CutPoints points;
  points.add(100, 0);
  points.add(100, 0);
  points.add(40, 0);
  EXPECT_EQ(points.last_in(60), 0);
  EXPECT_EQ(points.last_in(100), 100);
}

TEST(CutPointsTest, ACompleteFileIsNotCut) {
  CutPoints points;
  points.add(100, 0);
  points.complete();
  points.add(200, 0);
  EXPECT_EQ(points.last_in(1000), std::nullopt);
}

}  // namespace
}  // namespace framelane
