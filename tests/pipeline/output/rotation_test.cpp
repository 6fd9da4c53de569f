// Not built for ThreadSanitizer: what it tests has one thread.
#include "pipeline/output/rotation.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "pipeline/base/failure.hpp"
#include "tests/pipeline/source/media_files.hpp"

namespace framelane {
namespace {

using namespace std::chrono_literals;
using testing::TempFolder;
using testing::write_file;

std::chrono::system_clock::time_point at(std::time_t seconds) {
  return std::chrono::system_clock::from_time_t(seconds);
}

TEST(RotationTest, AFileIsCutAtTheFirstKeyframeAfterItsLength) {
  const Rotation rotation("cam.mp4", 60s);
  EXPECT_FALSE(rotation.cuts_at(0s));
  EXPECT_FALSE(rotation.cuts_at(59s));
  EXPECT_TRUE(rotation.cuts_at(60s));
  EXPECT_TRUE(rotation.cuts_at(75s));
}

TEST(RotationTest, RoundedTimestampsDoNotMakeASegmentOneGroupLonger) {
  const Rotation rotation("cam.mp4", 60s);
  EXPECT_TRUE(rotation.cuts_at(60s - 17ms));
  EXPECT_FALSE(rotation.cuts_at(60s - 40ms));
}

TEST(RotationTest, WithoutALengthNoFileIsCut) {
  EXPECT_FALSE(Rotation("cam.mp4").cuts_at(24h * 365));
}

TEST(RotationTest, AFileIsNamedByTheTimeAtWhichItBegins) {
  const TempFolder folder;
  Rotation rotation(folder / "cam-%s.ts", 60s);
  EXPECT_EQ(rotation.begin_file(at(1'000'000'000), Existing::kNumber).path(),
            folder / "cam-1000000000.ts.part");
  EXPECT_EQ(rotation.begin_file(at(1'000'000'060) + 999ms, Existing::kNumber).path(),
            folder / "cam-1000000060.ts.part");
}

TEST(RotationTest, AFileOfTheSameNameGetsAHigherNumberThoughTheLastWasDeleted) {
  const TempFolder folder;
  Rotation rotation(folder / "cam.ts", 60s);
  const std::string first = rotation.begin_file(at(1), Existing::kNumber).complete(false);
  EXPECT_EQ(first, folder / "cam.ts");
  std::filesystem::remove(first);
  const std::string second = rotation.begin_file(at(61), Existing::kNumber).complete(false);
  EXPECT_EQ(second, folder / "cam.2.ts");
  std::filesystem::remove(second);
  EXPECT_EQ(rotation.begin_file(at(121), Existing::kNumber).number(), 3);
}

TEST(RotationTest, NumbersThatAreTakenAreSkipped) {
  const TempFolder folder;
  for (const char* name : {"cam.ts", "cam.2.ts.part"}) write_file(folder / name, {1});
  Rotation rotation(folder / "cam.ts");
  EXPECT_EQ(rotation.begin_file(at(1), Existing::kNumber).number(), 3);
}

TEST(RotationTest, ANewNameBeginsWithoutANumber) {
  const TempFolder folder;
  Rotation rotation(folder / "%s.ts", 60s);
  rotation.begin_file(at(5), Existing::kNumber).complete(false);
  EXPECT_EQ(rotation.begin_file(at(5), Existing::kNumber).number(), 2);
  EXPECT_EQ(rotation.begin_file(at(6), Existing::kNumber).number(), 1);
}

TEST(RotationTest, AFieldThatIsNotKnownIsAConfigurationProblem) {
  EXPECT_THROW(Rotation("/rec/%Q.mp4", 60s), FeedError);
}

}  // namespace
}  // namespace framelane
