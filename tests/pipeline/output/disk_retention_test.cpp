// Not built for ThreadSanitizer: what it tests has one thread.
#include "pipeline/output/disk_retention.hpp"

#include <gmock/gmock.h>

#include "pipeline/base/failure.hpp"
#include "tests/pipeline/base/log_capture.hpp"
#include "tests/pipeline/output/retention_fixture.hpp"

namespace framelane {
namespace {

using namespace testing;  // of framelane
using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

/// Two outputs, of which the files take turns: 600 of 1000 bytes.
void write_six(const MemoryFolder& folder) {
  for (int i = 1; i <= 3; ++i) {
    write_aged(folder / ("a/" + std::to_string(i) + ".ts"), kNoon + std::chrono::minutes(2 * i),
               100);
    write_aged(folder / ("b/" + std::to_string(i) + ".ts"), kNoon + std::chrono::minutes(2 * i + 1),
               100);
  }
}

TEST_F(DiskRetentionTest, TheOldestOfAllOutputsGoUntilEnoughIsFree) {
  write_six(folder_);
  add("a/%s.ts", keep_free({.bytes = 650}));
  add("b/%s.ts", keep_free({.bytes = 650}));
  round();
  EXPECT_THAT(names(), UnorderedElementsAre("b/2.ts", "a/3.ts", "b/3.ts"));
}

TEST_F(DiskRetentionTest, OutputsThatStartTogetherHaveTheOldestFileOfAll) {
  write_six(folder_);
  DiskRetention disk(device_, space_of_);
  add("b/%s.ts", keep_free({.bytes = 500}));
  while (disk.turn(now_, outputs_)) {
  }
  disk.check_space();
  EXPECT_EQ(disk.idle_for(now_, outputs_), 5s);
  EXPECT_EQ(names().size(), 6u);
  add("a/%s.ts", keep_free({.bytes = 500}));
  now_.steady += 5s;
  while (disk.turn(now_, outputs_)) {
  }
  EXPECT_THAT(names(), UnorderedElementsAre("b/1.ts", "a/2.ts", "b/2.ts", "a/3.ts", "b/3.ts"));
}

TEST_F(DiskRetentionTest, AFullDiskWaitsForNoOtherOutput) {
  write_six(folder_);
  DiskRetention disk(device_, space_of_);
  add("b/%s.ts", keep_free({.bytes = 500}));
  disk.disk_is_full(now_.steady);
  while (disk.turn(now_, outputs_)) {
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "b/1.ts"));
}

TEST_F(DiskRetentionTest, APartOfTheFileSystemCanBeAskedFor) {
  write_six(folder_);
  add("a/%s.ts", keep_free({.part = 0.6}));
  add("b/%s.ts", keep_free({.part = 0.6}));
  round();
  EXPECT_THAT(names(), UnorderedElementsAre("a/2.ts", "b/2.ts", "a/3.ts", "b/3.ts"));
}

TEST_F(DiskRetentionTest, FilesOfOutputsWithoutMinFreeStay) {
  write_six(folder_);
  add("a/%s.ts", keep_for(24h));
  add("b/%s.ts", keep_free({.bytes = 600}));
  round();
  EXPECT_THAT(names(), UnorderedElementsAre("a/1.ts", "a/2.ts", "a/3.ts", "b/3.ts"));
}

TEST_F(DiskRetentionTest, AnOutputGivesNoMoreThanItsOwnMinFreeAsksFor) {
  write_six(folder_);
  add("a/%s.ts", keep_free({.bytes = 500}));
  add("b/%s.ts", keep_free({.bytes = 600}));
  round();
  EXPECT_THAT(names(), UnorderedElementsAre("a/2.ts", "a/3.ts", "b/2.ts", "b/3.ts"));
}

TEST_F(DiskRetentionTest, SpaceIsMeasuredAfterEachSegmentAndEveryFewSeconds) {
  OutputRetention& output = add("a/%s.ts", keep_free({.bytes = 800}));
  round();
  for (int i = 1; i <= 4; ++i) {
    complete(output, "a/" + std::to_string(i) + ".ts", 100);
    round(1s);
  }
  EXPECT_THAT(names(), UnorderedElementsAre("a/3.ts", "a/4.ts"));
  write_aged(folder_ / "filler", kNoon, 50);  // by somebody else
  EXPECT_LE(disk_.idle_for(now_, outputs_), 5s);
  round(5s);
  EXPECT_THAT(names(), UnorderedElementsAre("a/4.ts", "filler"));
}

TEST_F(DiskRetentionTest, WhereNothingIsLeftToDeleteItWarnsOnceAndCounts) {
  write_six(folder_);
  add("a/%s.ts", keep_free({.bytes = 900}));
  add("b/%s.ts", keep_free({.bytes = 100}));
  const LogCapture log;
  for (int i = 0; i < 3; ++i) round(5s);
  EXPECT_THAT(names(), UnorderedElementsAre("a/3.ts", "b/1.ts", "b/2.ts", "b/3.ts"));
  EXPECT_EQ(log.count("less is free than min_free asks for, and nothing is left to delete"), 1u);
  EXPECT_EQ(faults(0, RetentionFault::kSpace), 3u);
  EXPECT_EQ(faults(1, RetentionFault::kSpace), 0u);
  EXPECT_NE(stats_[0]->reason(), "");
  space_of_ = [this](const std::string&) {
    return DiskSpace{.device = device_, .whole = 1000, .free = 950};
  };
  round(5s);
  EXPECT_EQ(log.count("enough is free again"), 1u);
  EXPECT_EQ(stats_[0]->reason(), "");
}

TEST_F(DiskRetentionTest, WhatWasDeletedCountsAsFreeBeforeItShows) {
  write_six(folder_);
  add("a/%s.ts", keep_free({.bytes = 500}));
  add("b/%s.ts", keep_free({.bytes = 500}));
  // As a file system that frees space later, or a file that somebody has open.
  space_of_ = [this](const std::string&) {
    return DiskSpace{.device = device_, .whole = 1000, .free = 400};
  };
  round();
  round(5s);
  EXPECT_THAT(names(), UnorderedElementsAre("b/1.ts", "a/2.ts", "b/2.ts", "a/3.ts", "b/3.ts"));
  round(30s);  // it does not show: more has to go
  EXPECT_THAT(names(), UnorderedElementsAre("a/2.ts", "b/2.ts", "a/3.ts", "b/3.ts"));
  disk_.disk_is_full(now_.steady);
  round();
  EXPECT_THAT(names(), UnorderedElementsAre("b/2.ts", "a/3.ts", "b/3.ts"));
}

TEST_F(DiskRetentionTest, AFullDiskIsHeededOnceUntilWhatIsDeletedHasHadTimeToShow) {
  write_six(folder_);
  add("a/%s.ts", keep_free({.bytes = 300}));
  add("b/%s.ts", keep_free({.bytes = 300}));
  space_of_ = [this](const std::string&) {
    return DiskSpace{.device = device_, .whole = 1000, .free = 200};
  };
  round();
  EXPECT_EQ(names().size(), 5u);
  for (int i = 0; i < 3; ++i) {  // as an output that tries again
    disk_.disk_is_full(now_.steady);
    round(1s);
    EXPECT_EQ(names().size(), 4u);
  }
}

TEST_F(DiskRetentionTest, RoomIsMadeWhileAPassGoesOn) {
  write_six(folder_);
  for (int i = 0; i < 2 * OutputRetention::kEntriesPerTurn; ++i) {
    write_aged(folder_ / ("other/" + std::to_string(i) + ".ts"), kNoon, 0);
  }
  add("a/%s.ts", keep_free({.bytes = 400}));
  const OutputRetention& other = add("other/%s.ts", keep_for(24h));
  round();
  ASSERT_EQ(names_in(folder_ / "a/").size(), 3u);
  write_aged(folder_ / "filler", kNoon, 100);
  now_.steady += OutputRetention::kPassEvery;
  const std::uint64_t entries = other.work().entries;
  EXPECT_TRUE(disk_.turn(now_, outputs_));
  EXPECT_EQ(other.work().entries, entries + OutputRetention::kEntriesPerTurn);
  EXPECT_EQ(names_in(folder_ / "a/").size(), 2u);
}

TEST_F(DiskRetentionTest, BeforeAllFilesAreKnownNoRoomIsMade) {
  write_six(folder_);
  for (int i = 0; i < 2 * OutputRetention::kEntriesPerTurn; ++i) {
    write_aged(folder_ / ("other/" + std::to_string(i) + ".ts"), kNoon, 0);
  }
  add("a/%s.ts", keep_free({.bytes = 500}));
  add("other/%s.ts", keep_free({.bytes = 500}));
  EXPECT_TRUE(disk_.turn(now_, outputs_));
  EXPECT_EQ(names_in(folder_ / "a/").size(), 3u);
}

TEST_F(DiskRetentionTest, WhatAgeAndSizeDeleteMakesRoomFirst) {
  write_six(folder_);
  write_aged(folder_ / "a/0.ts", kNoon + 1h, 100);
  SegmentOptions keep = keep_free({.bytes = 600});
  keep.keep_bytes = 100;
  add("a/%s.ts", keep);
  add("b/%s.ts", keep_free({.bytes = 600}));
  round();
  EXPECT_THAT(names(), UnorderedElementsAre("a/0.ts", "b/1.ts", "b/2.ts", "b/3.ts"));
}

TEST_F(DiskRetentionTest, TheShortageOfAnotherFileSystemDeletesNothing) {
  write_six(folder_);
  const OutputRetention& output = add("a/%s.ts", keep_free({.bytes = 300}));
  round();
  space_of_ = [this](const std::string&) {
    return DiskSpace{.device = device_ + 1, .whole = 1000, .free = 0};
  };
  const std::uint64_t entries = output.work().entries;
  round(5s);
  EXPECT_EQ(names().size(), 6u);
  EXPECT_EQ(faults(0, RetentionFault::kSpace), 1u);
  EXPECT_LE(disk_.idle_for(now_, outputs_), 1ms);
  round();
  EXPECT_GT(output.work().entries, entries);  // it looks where its files are
}

// A link that is set anew stands for a disk that is mounted.
TEST_F(DiskRetentionTest, WhereADiskIsMountedInMidRunNeitherItsFilesNorOthersGo) {
  const TempFolder other;
  ASSERT_NE(device_of(other / ""), device_);
  write_six(folder_);
  for (int i = 1; i <= 3; ++i) write_aged(other / (std::to_string(i) + ".ts"), kNoon, 100);
  std::filesystem::create_directory_symlink(folder_ / "a", folder_ / "link");
  space_of_ = [this](const std::string& folder) {
    const dev_t device = device_of(folder);
    return DiskSpace{.device = device, .whole = 1000, .free = device == device_ ? 1000 : 0};
  };
  const OutputRetention& moves = add("link/%s.ts", keep_free({.bytes = 500}));
  add("b/%s.ts", keep_free({.bytes = 500}));
  round();
  std::filesystem::remove(folder_ / "link");
  std::filesystem::create_directory_symlink(other / "", folder_ / "link");
  for (int i = 0; i < 3; ++i) round(5s);
  EXPECT_EQ(names().size(), 6u);
  EXPECT_EQ(names_in(other / "").size(), 3u);
  EXPECT_EQ(moves.device(), device_of(other / ""));  // whose thread takes it over
  EXPECT_EQ(stats_[1]->reason(), "");
  EXPECT_GT(DiskRetention(device_ + 1, space_of_).idle_for(now_, outputs_), 1s);
}

TEST_F(DiskRetentionTest, FilesOnAnotherFileSystemStayAndTheOthersGo) {
  const TempFolder other;
  ASSERT_NE(device_of(other / ""), device_);
  for (int i = 1; i <= 3; ++i) {
    write_aged(other / (std::to_string(i) + ".ts"), kNoon - 1h, 100);
    write_aged(folder_ / ("2002/" + std::to_string(i) + ".ts"), kNoon + std::chrono::seconds(i),
               100);
  }
  std::filesystem::create_directory_symlink(other / "", folder_ / "2001");
  add("%Y/%s.ts", keep_free({.bytes = 850}));
  round();
  EXPECT_EQ(names_in(other / "").size(), 3u);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "2002/2.ts"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "2002/3.ts"));
}

TEST(DiskSpaceTest, ItIsThatOfTheFoldersFileSystem) {
  const TempFolder folder;
  const auto space = disk_space(folder / "");
  EXPECT_EQ(space.device, device_of(folder / ""));
  EXPECT_GT(space.whole, space.free);
  EXPECT_THROW(disk_space(folder / "none"), IoError);
}

struct statvfs blocks(std::uint64_t all, std::uint64_t available) {
  struct statvfs disk {};
  disk.f_frsize = 4096;
  disk.f_blocks = all;
  disk.f_bavail = available;
  return disk;
}

TEST(DiskSpaceTest, AFileSystemThatCannotTellIsNotFull) {
  EXPECT_THROW(disk_space("/proc"), IoError);  // says that it has no blocks
  EXPECT_THROW(space_from({}, 1), IoError);
  EXPECT_THROW(space_from(blocks(UINT64_MAX, 10), 1), IoError);
}

TEST(DiskSpaceTest, SizesThatDoNotFitAreTheLargest) {
  for (const std::uint64_t many : {std::uint64_t{1} << 51U, std::uint64_t{1} << 52U, UINT64_MAX}) {
    const auto space = space_from(blocks(many, many), 1);
    EXPECT_EQ(space.whole, INT64_MAX);
    EXPECT_EQ(space.free, INT64_MAX);
  }
  const auto space = space_from(blocks(1000, 0), 1);
  EXPECT_EQ(space.whole, 4'096'000);
  EXPECT_EQ(space.free, 0);
}

TEST_F(DiskRetentionTest, WhySpaceCannotBeToldIsSaidAndWhatToDo) {
  write_six(folder_);
  add("a/%s.ts", keep_free({.bytes = 500}));
  space_of_ = [this](const std::string&) { return disk_space(folder_ / "none"); };
  const LogCapture log;
  for (int i = 0; i < 3; ++i) round(5s);
  EXPECT_EQ(log.count("how much is free cannot be told: No such file or directory; nothing is "
                      "deleted for min_free until it can: check the disk"),
            1u);
  EXPECT_EQ(log.count("make room, or lower min_free"), 0u);
  EXPECT_EQ(faults(0, RetentionFault::kSpace), 3u);
  EXPECT_EQ(names().size(), 6u);
}

TEST_F(DiskRetentionTest, OneFolderThatCannotTellTheSpaceHoldsUpNoOther) {
  write_six(folder_);
  add("a/%s.ts", keep_free({.bytes = 500}));
  add("b/%s.ts", keep_free({.bytes = 500}));
  space_of_ = [this](const std::string& folder) {
    return folder == folder_ / "a" ? disk_space(folder_ / "none") : space();
  };
  round(5s);
  EXPECT_EQ(space().free, 500);
}

TEST_F(DiskRetentionTest, EndlessSpaceIsEnough) {
  write_six(folder_);
  add("a/%s.ts", keep_free({.bytes = 500}));
  add("b/%s.ts", keep_free({.part = 0.5}));
  round();
  // What was deleted shortly before must not make the sum overflow.
  space_of_ = [this](const std::string&) {
    return DiskSpace{.device = device_, .whole = 1000, .free = 400};
  };
  round(5s);
  const std::size_t left = names().size();
  EXPECT_LT(left, 6u);
  space_of_ = [this](const std::string&) {
    return DiskSpace{.device = device_, .whole = INT64_MAX, .free = INT64_MAX};
  };
  round(5s);
  EXPECT_EQ(names().size(), left);
}

TEST_F(DiskRetentionTest, AFileThatCannotBeDeletedHoldsUpNoOther) {
  write_six(folder_);
  add("a/%s.ts", keep_free({.bytes = 500}));
  add("b/%s.ts", keep_free({.bytes = 500}));
  std::filesystem::permissions(folder_ / "a", std::filesystem::perms(0555));
  {
    const WithoutRootsRights ordinary;
    round();
  }
  std::filesystem::permissions(folder_ / "a", std::filesystem::perms(0755));
  EXPECT_THAT(names(), UnorderedElementsAre("a/1.ts", "a/2.ts", "a/3.ts", "b/2.ts", "b/3.ts"));
  EXPECT_EQ(faults(0, RetentionFault::kDelete), 1u);
}

}  // namespace
}  // namespace framelane
