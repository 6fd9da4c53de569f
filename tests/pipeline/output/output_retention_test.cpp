// Not built for ThreadSanitizer: what it tests has one thread.
#include "pipeline/output/output_retention.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/pipeline/base/log_capture.hpp"
#include "tests/pipeline/output/retention_fixture.hpp"

namespace framelane {
namespace {

using namespace testing;  // of framelane
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

using OutputRetentionTest = DiskRetentionTest;

constexpr std::chrono::hours kTenYears{24 * 3650};

TEST_F(OutputRetentionTest, FilesOlderThanTheAgeGo) {
  write_aged(folder_ / "cam.mp4", kNoon - 12h - 1s);
  write_aged(folder_ / "cam.2.mp4", kNoon - 12h);
  write_aged(folder_ / "cam.3.mp4", kNoon);
  round_of("cam.mp4", keep_for(12h));
  EXPECT_THAT(names(), UnorderedElementsAre("cam.2.mp4", "cam.3.mp4"));
}

TEST_F(OutputRetentionTest, FilesGrowTooOldAsTimePasses) {
  write_aged(folder_ / "cam.mp4", kNoon);
  write_aged(folder_ / "cam.2.mp4", kNoon + 1s);
  round_of("cam.mp4", keep_for(1h));
  round(1h);
  EXPECT_EQ(names().size(), 2u);
  round(1s);
  EXPECT_THAT(names(), ElementsAre("cam.2.mp4"));
}

TEST_F(OutputRetentionTest, TheNextTurnIsDueWhenTheOldestFileGrowsTooOld) {
  write_aged(folder_ / "cam.mp4", kNoon - 1h + 40s);
  write_aged(folder_ / "cam.2.mp4", kNoon);
  round_of("cam.mp4", keep_for(1h));
  EXPECT_EQ(disk_.idle_for(now_, outputs_), 40s);
}

TEST_F(OutputRetentionTest, TheOldestGoUntilTheRestIsSmallEnough) {
  for (int i = 1; i <= 5; ++i) {
    write_aged(numbered_name(folder_ / "cam.mp4", i), kNoon + std::chrono::seconds(i), 100);
  }
  round_of("cam.mp4", keep_up_to(299));
  EXPECT_THAT(names(), UnorderedElementsAre("cam.4.mp4", "cam.5.mp4"));
}

TEST_F(OutputRetentionTest, ExactlyTheSizeIsAllowed) {
  write_aged(folder_ / "cam.mp4", kNoon, 100);
  write_aged(folder_ / "cam.2.mp4", kNoon + 1s, 200);
  round_of("cam.mp4", keep_up_to(300));
  EXPECT_EQ(names().size(), 2u);
}

TEST_F(OutputRetentionTest, TheNewestStaysHoweverOldAndLarge) {
  write_aged(folder_ / "cam.mp4", kNoon - 48h, 100);
  write_aged(folder_ / "cam.2.mp4", kNoon - 24h, 100);
  SegmentOptions keep = keep_for(1s);
  keep.keep_bytes = 1;
  round_of("cam.mp4", keep);
  EXPECT_THAT(names(), ElementsAre("cam.2.mp4"));
}

TEST_F(OutputRetentionTest, OnlyItsOwnCompleteFilesGo) {
  for (const char* name : {"dog.mp4", "cam.mp4.part", "cam.9.mkv", "cam.mp4"}) {
    write_aged(folder_ / name, kNoon - 24h);
  }
  std::filesystem::create_directory(folder_ / "cam.3.mp4");
  write_aged(folder_ / "cam.2.mp4", kNoon);
  round_of("cam.mp4", keep_for(12h));
  EXPECT_THAT(names(), UnorderedElementsAre("dog.mp4", "cam.mp4.part", "cam.9.mkv", "cam.2.mp4"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "cam.3.mp4"));
}

TEST_F(OutputRetentionTest, FoldersThatBecomeEmptyGoToo) {
  write_aged(folder_ / "2023/cam.mp4", kNoon - 24h);
  write_aged(folder_ / "2024/cam.mp4", kNoon);
  round_of("%Y/cam.mp4", keep_for(12h));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "2023"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "2024/cam.mp4"));
}

TEST_F(OutputRetentionTest, TwoSlashesInAUrlAreOne) {
  OutputRetention& output = add("%Y//cam.mp4", keep_up_to(150));
  round();
  const std::string name = output.pattern().name_at(kNoon);
  write_aged(name, kNoon, 100);
  output.completed(name, disk_.calls());
  round(60s);  // finds the file again, under one name
  complete(output, "2100/cam.mp4", 50);
  round();
  EXPECT_EQ(names().size(), 2u);
}

TEST_F(OutputRetentionTest, WhatOthersAddAndDeleteIsFoundByTheNextPass) {
  for (int i = 1; i <= 3; ++i) {
    write_aged(numbered_name(folder_ / "cam.mp4", i), kNoon + std::chrono::seconds(i), 100);
  }
  OutputRetention& output = add("cam.mp4", keep_up_to(300));
  round();
  std::filesystem::remove(folder_ / "cam.2.mp4");
  write_aged(folder_ / "cam.4.mp4", kNoon - 1h, 50);
  round(60s);
  complete(output, "cam.5.mp4", 50);
  round();
  EXPECT_THAT(names(), UnorderedElementsAre("cam.mp4", "cam.3.mp4", "cam.4.mp4", "cam.5.mp4"));
  complete(output, "cam.6.mp4", 50);
  round();
  EXPECT_THAT(names(), UnorderedElementsAre("cam.mp4", "cam.3.mp4", "cam.5.mp4", "cam.6.mp4"));
}

TEST_F(OutputRetentionTest, PassesComeMoreOftenWhereTheAgeIsShort) {
  const OutputRetention& output = add("cam.mp4", keep_for(5s));
  round();
  const std::uint64_t entries = output.work().entries;
  round(4s);
  EXPECT_EQ(output.work().entries, entries);
  round(1s);
  EXPECT_GT(output.work().entries, entries);
}

TEST_F(OutputRetentionTest, AClockThatIsSetBackDelaysNoPass) {
  const OutputRetention& output = add("cam.mp4", keep_for(12h));
  round();
  const std::uint64_t entries = output.work().entries;
  now_.wall -= 24h;
  round(60s);
  EXPECT_GT(output.work().entries, entries);
}

TEST_F(OutputRetentionTest, AClockThatJumpsAheadAndIsSetRightDeletesNothing) {
  for (int i = 1; i <= 3; ++i) {
    write_aged(numbered_name(folder_ / "cam.mp4", i), kNoon - std::chrono::hours(i));
  }
  OutputRetention& output = add("cam.mp4", keep_for(12h));
  round();
  const LogCapture log;
  now_.wall += kTenYears;
  round();
  EXPECT_GE(disk_.idle_for(now_, outputs_), 1s);
  complete(output, "cam.4.mp4");
  round(AgeClock::kHolds - 1s);
  EXPECT_EQ(names().size(), 4u);
  EXPECT_EQ(log.count("the clock has jumped ahead by 87600.0 h; for an hour, files are deleted by "
                      "age as if it had not: set it if it is wrong"),
            1u);
  now_.wall -= kTenYears;
  round(AgeClock::kHolds);
  EXPECT_EQ(names().size(), 4u);
  EXPECT_EQ(log.count("files are deleted by age as the clock says again"), 1u);
}

TEST_F(OutputRetentionTest, AClockThatStaysAheadIsBelievedAfterAnHour) {
  write_aged(folder_ / "cam.mp4", kNoon - 10h);
  write_aged(folder_ / "cam.2.mp4", kNoon - 11h - 30min);
  write_aged(folder_ / "cam.3.mp4", kNoon);
  round_of("cam.mp4", keep_for(12h));
  now_.wall += kTenYears;
  round(31min);
  // What is too old without the jump goes meanwhile.
  EXPECT_THAT(names(), UnorderedElementsAre("cam.mp4", "cam.3.mp4"));
  round(AgeClock::kHolds);
  EXPECT_THAT(names(), ElementsAre("cam.3.mp4"));
}

TEST_F(OutputRetentionTest, EachJumpOfTheClockIsBelievedAnHourLater) {
  write_aged(folder_ / "cam.mp4", kNoon - 1h);
  write_aged(folder_ / "cam.2.mp4", kNoon);
  round_of("cam.mp4", keep_for(12h));
  const LogCapture log;
  now_.wall += 2min;
  round(59min);
  now_.wall += kTenYears;
  round(2min);
  EXPECT_EQ(names().size(), 2u);
  EXPECT_EQ(log.count("the clock has jumped ahead"), 2u);
  round(AgeClock::kHolds);
  EXPECT_THAT(names(), ElementsAre("cam.2.mp4"));
}

// 50,000 files: each is examined once. After that, a segment costs the examination of its own file
// and a deletion, and a pass reads names alone, a part in each turn.
TEST_F(OutputRetentionTest, WithFiftyThousandFilesASegmentCostsWhatItCostsWithOne) {
  constexpr int kFiles = 50'000;
  constexpr std::time_t kFirst = 1'600'000'000;
  for (int i = 0; i < kFiles; ++i) {
    const std::string name = folder_ / ("cam-" + std::to_string(kFirst + i) + ".ts");
    const int fd = open(name.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    const timespec changed{kFirst + i, 0};
    const timespec times[] = {changed, changed};
    ASSERT_EQ(futimens(fd, times), 0);
    close(fd);
  }
  now_.wall = std::chrono::system_clock::from_time_t(kFirst + kFiles);
  OutputRetention& output = add("cam-%s.ts", keep_for(std::chrono::seconds(kFiles)));
  EXPECT_TRUE(disk_.turn(now_, outputs_));
  EXPECT_EQ(output.work().entries, std::uint64_t{OutputRetention::kEntriesPerTurn});
  round();
  EXPECT_EQ(output.work().examined, std::uint64_t{kFiles});
  EXPECT_EQ(output.work().deletions, 0u);

  const auto scanned = output.work();
  for (int segment = 1; segment <= 5; ++segment) {
    complete(output, "cam-1700000000." + std::to_string(segment) + ".ts");
    round(1s);
    EXPECT_EQ(output.work().entries, scanned.entries);
    EXPECT_EQ(output.work().examined, scanned.examined + static_cast<std::uint64_t>(segment));
    EXPECT_EQ(output.work().deletions, static_cast<std::uint64_t>(segment));
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "cam-1600000004.ts"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "cam-1600000005.ts"));

  const auto steady = output.work();
  now_.steady += 60s;
  EXPECT_TRUE(disk_.turn(now_, outputs_));
  EXPECT_EQ(output.work().entries, steady.entries + OutputRetention::kEntriesPerTurn);
  round();
  EXPECT_GE(output.work().entries, steady.entries + kFiles);
  EXPECT_EQ(output.work().examined, steady.examined);
}

TEST_F(OutputRetentionTest, ALinkInPlaceOfAFileIsNoRecording) {
  write_aged(folder_ / "elsewhere", kNoon - 24h);
  std::filesystem::create_symlink(folder_ / "elsewhere", folder_ / "cam.mp4");
  write_aged(folder_ / "cam.2.mp4", kNoon - 1h);
  write_aged(folder_ / "cam.3.mp4", kNoon);
  round_of("cam.mp4", keep_for(30min));
  EXPECT_THAT(names(), UnorderedElementsAre("elsewhere", "cam.mp4", "cam.3.mp4"));
}

TEST_F(OutputRetentionTest, AFileThatWasWrittenAnewIsAsOldAsItIsNow) {
  for (int i = 1; i <= 3; ++i) {
    write_aged(numbered_name(folder_ / "cam.mp4", i), kNoon + std::chrono::seconds(i));
  }
  round_of("cam.mp4", keep_for(30s));
  write_aged(folder_ / "cam.mp4", kNoon + 20s);
  round(34s);
  EXPECT_THAT(names(), ElementsAre("cam.mp4"));
}

TEST_F(OutputRetentionTest, AFileThatHasShrunkCountsAsLargeAsItIsNow) {
  for (int i = 1; i <= 3; ++i) {
    write_aged(numbered_name(folder_ / "cam.mp4", i), kNoon + std::chrono::seconds(i), 100);
  }
  OutputRetention& output = add("cam.mp4", keep_up_to(300));
  round(10s);
  write_aged(folder_ / "cam.mp4", kNoon + 1s, 0);
  complete(output, "cam.4.mp4", 100);
  round();
  EXPECT_EQ(names().size(), 4u);
}

TEST_F(OutputRetentionTest, WhatHasTakenTheNameOfAFileStays) {
  for (int i = 1; i <= 3; ++i) {
    write_aged(numbered_name(folder_ / "cam.mp4", i), kNoon + std::chrono::seconds(i));
  }
  round_of("cam.mp4", keep_for(30s));
  std::filesystem::rename(folder_ / "cam.mp4", folder_ / "saved");
  std::filesystem::create_symlink(folder_ / "saved", folder_ / "cam.mp4");
  round(40s);
  EXPECT_THAT(names(), UnorderedElementsAre("saved", "cam.mp4", "cam.3.mp4"));
  EXPECT_EQ(faults(0, RetentionFault::kDelete), 0u);
}

class Unwritable {
 public:
  Unwritable(std::string folder, int mode) : folder_(std::move(folder)) {
    chmod(folder_.c_str(), static_cast<mode_t>(mode));
  }
  ~Unwritable() { chmod(folder_.c_str(), 0755); }
  Unwritable(const Unwritable&) = delete;
  Unwritable& operator=(const Unwritable&) = delete;

 private:
  const std::string folder_;
};

TEST_F(OutputRetentionTest, FilesThatCannotBeDeletedAreReportedOnceUntilTheyAreGone) {
  for (int i = 1; i <= 3; ++i) {
    write_aged(numbered_name(folder_ / "2001/cam.mp4", i), kNoon - 24h + std::chrono::seconds(i));
  }
  const LogCapture log;
  add("%Y/cam.mp4", keep_for(12h));
  {
    const Unwritable locked(folder_ / "2001", 0555);
    const WithoutRootsRights ordinary;
    for (int i = 0; i < 5; ++i) round(10s);
  }
  EXPECT_EQ(log.count("cannot delete"), 1u);
  EXPECT_EQ(log.count("2001/cam.mp4: Permission denied; files that keep no longer allows, and "
                      "are still there: 2"),
            1u);
  EXPECT_EQ(faults(0, RetentionFault::kDelete), 2u);
  EXPECT_THAT(stats_[0]->reason(), HasSubstr("cannot delete"));
  round(60s);
  EXPECT_THAT(names(), ElementsAre("2001/cam.3.mp4"));
  EXPECT_EQ(log.count("deleting old files: running again"), 1u);
  EXPECT_EQ(stats_[0]->reason(), "");
}

TEST_F(OutputRetentionTest, AFolderThatIsNotMadeYetIsOnTheFileSystemOfTheOneAbove) {
  OutputRetention& output = add("rec/gate/%s.mp4", {});
  output.locate();
  EXPECT_EQ(output.folder() + '/', folder_ / "");
  EXPECT_EQ(output.device(), device_);
}

TEST_F(OutputRetentionTest, AFolderThatDoesNotAnswerIsNotTakenForTheOneAbove) {
  write_aged(folder_ / "rec/gate/1.mp4", kNoon);
  OutputRetention& known = add("rec/gate/%s.mp4", {});
  OutputRetention& fresh = add("rec/gate/%s.mp4", {});
  known.locate();
  const Unwritable locked(folder_ / "rec", 0);
  {
    const WithoutRootsRights ordinary;
    EXPECT_FALSE(known.locate());
    EXPECT_FALSE(fresh.locate());
  }
  EXPECT_EQ(known.folder(), folder_ / "rec/gate");
  EXPECT_EQ(known.device(), device_);
  EXPECT_EQ(fresh.device(), 0u);
}

TEST_F(OutputRetentionTest, AFolderThatCannotBeReadIsReportedAndItsFilesStillCount) {
  write_aged(folder_ / "2001/cam.mp4", kNoon - 2h, 100);
  write_aged(folder_ / "2002/cam.mp4", kNoon - 1h, 100);
  write_aged(folder_ / "2003/cam.mp4", kNoon, 100);
  const LogCapture log;
  OutputRetention& output = add("%Y/cam.mp4", keep_up_to(300));
  round();
  {
    const Unwritable hidden(folder_ / "2002", 0300);
    const WithoutRootsRights ordinary;
    round(60s);
    EXPECT_EQ(log.count("looking for old files: cannot read"), 1u);
    EXPECT_EQ(faults(0, RetentionFault::kList), 1u);
    EXPECT_THAT(stats_[0]->reason(), HasSubstr("2002/: Permission denied"));
    complete(output, "2004/cam.mp4", 100);
    round();  // the file that cannot be listed counts: the oldest one goes, and no other
  }
  EXPECT_THAT(names(), UnorderedElementsAre("2002/cam.mp4", "2003/cam.mp4", "2004/cam.mp4"));
  round(60s);
  EXPECT_EQ(log.count("looking for old files: running again"), 1u);
  EXPECT_EQ(stats_[0]->reason(), "");
}

}  // namespace
}  // namespace framelane
