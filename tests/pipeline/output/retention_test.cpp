// Not built for ThreadSanitizer: what it tests has one thread.
#include "pipeline/output/retention.hpp"

#include <gmock/gmock.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <string>

#include "tests/pipeline/base/log_capture.hpp"
#include "tests/pipeline/output/output_fixture.hpp"

namespace framelane {
namespace {

using namespace testing;  // of framelane
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

using WallTime = std::chrono::system_clock::time_point;
using SteadyTime = std::chrono::steady_clock::time_point;

const WallTime kNoon = std::chrono::system_clock::from_time_t(1'700'000'000);

/// Writes a file of this size, whose last change was at this time.
void write_aged(const std::string& path, WallTime changed, std::size_t bytes = 1) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  write_file(path, Bytes(bytes, 1));
  std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::from_sys(changed));
}

class RetentionTest : public ::testing::Test {
 protected:
  Undeletable enforce(const std::string& path, const SegmentOptions& keep, WallTime now = kNoon) {
    return enforce_retention(FilePattern(folder_ / path), keep, now, [this] { ++looked_at_; });
  }
  std::set<std::string> names() const { return names_in(folder_ / ""); }

  const TempFolder folder_;
  int looked_at_ = 0;
};

SegmentOptions keep_for(std::chrono::seconds age) { return {.keep_age = age, .keep_bytes = {}}; }
SegmentOptions keep_up_to(std::int64_t bytes) { return {.keep_age = {}, .keep_bytes = bytes}; }

TEST_F(RetentionTest, FilesOlderThanTheAgeGo) {
  write_aged(folder_ / "cam.mp4", kNoon - 12h - 1s);
  write_aged(folder_ / "cam.2.mp4", kNoon - 12h);
  write_aged(folder_ / "cam.3.mp4", kNoon);
  EXPECT_EQ(enforce("cam.mp4", keep_for(12h)).files, 0u);
  EXPECT_THAT(names(), UnorderedElementsAre("cam.2.mp4", "cam.3.mp4"));
}

TEST_F(RetentionTest, FilesGrowTooOldAsTimePasses) {
  write_aged(folder_ / "cam.mp4", kNoon);
  write_aged(folder_ / "cam.2.mp4", kNoon + 1s);
  enforce("cam.mp4", keep_for(1h), kNoon + 1h);
  EXPECT_EQ(names().size(), 2u);
  enforce("cam.mp4", keep_for(1h), kNoon + 1h + 1s);
  EXPECT_THAT(names(), ElementsAre("cam.2.mp4"));
}

TEST_F(RetentionTest, TheOldestGoUntilTheRestIsSmallEnough) {
  for (int i = 1; i <= 5; ++i) {
    write_aged(numbered_name(folder_ / "cam.mp4", i), kNoon + std::chrono::seconds(i), 100);
  }
  enforce("cam.mp4", keep_up_to(299));
  EXPECT_THAT(names(), UnorderedElementsAre("cam.4.mp4", "cam.5.mp4"));
}

TEST_F(RetentionTest, ExactlyTheSizeIsAllowed) {
  write_aged(folder_ / "cam.mp4", kNoon, 100);
  write_aged(folder_ / "cam.2.mp4", kNoon + 1s, 200);
  enforce("cam.mp4", keep_up_to(300));
  EXPECT_EQ(names().size(), 2u);
}

TEST_F(RetentionTest, TheNewestStaysHoweverOldAndLarge) {
  write_aged(folder_ / "cam.mp4", kNoon - 48h, 100);
  write_aged(folder_ / "cam.2.mp4", kNoon - 24h, 100);
  enforce("cam.mp4", {.keep_age = 1s, .keep_bytes = 1});
  EXPECT_THAT(names(), ElementsAre("cam.2.mp4"));
}

TEST_F(RetentionTest, WithoutALimitNothingIsEvenLookedAt) {
  write_aged(folder_ / "cam.mp4", kNoon - 24h);
  write_aged(folder_ / "cam.2.mp4", kNoon);
  enforce("cam.mp4", {});
  EXPECT_EQ(names().size(), 2u);
  EXPECT_EQ(looked_at_, 0);
}

TEST_F(RetentionTest, OnlyItsOwnCompleteFilesGo) {
  for (const char* name : {"dog.mp4", "cam.mp4.part", "cam.9.mkv", "cam.mp4"}) {
    write_aged(folder_ / name, kNoon - 24h);
  }
  write_aged(folder_ / "cam.2.mp4", kNoon);
  enforce("cam.mp4", keep_for(12h));
  EXPECT_THAT(names(), UnorderedElementsAre("dog.mp4", "cam.mp4.part", "cam.9.mkv", "cam.2.mp4"));
}

TEST_F(RetentionTest, FoldersThatBecomeEmptyGoToo) {
  write_aged(folder_ / "2023/cam.mp4", kNoon - 24h);
  write_aged(folder_ / "2024/cam.mp4", kNoon);
  enforce("%Y/cam.mp4", keep_for(12h));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "2023"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "2024/cam.mp4"));
}

TEST_F(RetentionTest, EachFileShowsThatTheCallStillWorks) {
  for (int i = 1; i <= 3; ++i) {
    write_aged(numbered_name(folder_ / "cam.mp4", i), kNoon - 24h);
  }
  enforce("cam.mp4", keep_for(12h));
  EXPECT_EQ(looked_at_, 3 + 2);  // each when it is examined, two of them when they are deleted
}

TEST_F(RetentionTest, IsDueAtTheStartAndThenOnceAMinute) {
  const FilePattern pattern(folder_ / "cam.mp4");
  const SegmentOptions keep = keep_for(12h);
  Retention retention(pattern, keep, "gate");
  const SteadyTime start{24h};
  EXPECT_TRUE(retention.due(start));
  retention.enforce({start, kNoon}, [] {});
  EXPECT_FALSE(retention.due(start));
  EXPECT_FALSE(retention.due(start + 59s));
  EXPECT_TRUE(retention.due(start + 60s));
}

TEST_F(RetentionTest, IsDueAfterTheAgeIfThatIsLessThanAMinute) {
  const FilePattern pattern(folder_ / "cam.mp4");
  const SegmentOptions keep = keep_for(5s);
  Retention retention(pattern, keep, "gate");
  const SteadyTime start{24h};
  retention.enforce({start, kNoon}, [] {});
  EXPECT_FALSE(retention.due(start + 4s));
  EXPECT_TRUE(retention.due(start + 5s));
}

TEST_F(RetentionTest, AClockThatIsSetBackDoesNotDelayTheNextTime) {
  const FilePattern pattern(folder_ / "cam.mp4");
  const SegmentOptions keep = keep_for(12h);
  Retention retention(pattern, keep, "gate");
  const SteadyTime start{24h};
  retention.enforce({start, kNoon}, [] {});
  retention.enforce({start + 60s, kNoon - 24h}, [] {});
  EXPECT_TRUE(retention.due(start + 120s));
}

/// While it lives, this thread obeys the permissions of files, as root otherwise need not.
class WithoutRootsRights {
 public:
  WithoutRootsRights() {
    EXPECT_EQ(syscall(SYS_capget, &header_, before_), 0);
    __user_cap_data_struct less[2] = {before_[0], before_[1]};
    less[0].effective &= ~(1u << CAP_DAC_OVERRIDE | 1u << CAP_FOWNER);
    EXPECT_EQ(syscall(SYS_capset, &header_, less), 0);
  }
  ~WithoutRootsRights() { syscall(SYS_capset, &header_, before_); }
  WithoutRootsRights(const WithoutRootsRights&) = delete;
  WithoutRootsRights& operator=(const WithoutRootsRights&) = delete;

 private:
  __user_cap_header_struct header_{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct before_[2]{};
};

TEST_F(RetentionTest, FilesThatCannotBeDeletedAreReportedOnceUntilTheyAreGone) {
  for (int i = 1; i <= 3; ++i) {
    write_aged(numbered_name(folder_ / "2001/cam.mp4", i), kNoon - 24h + std::chrono::seconds(i));
  }
  const FilePattern pattern(folder_ / "%Y/cam.mp4");
  const SegmentOptions keep = keep_for(12h);
  Retention retention(pattern, keep, "gate");
  const LogCapture log;
  const SteadyTime start{24h};
  std::filesystem::permissions(folder_ / "2001", std::filesystem::perms(0555));
  {
    const WithoutRootsRights ordinary;
    for (int i = 0; i < 5; ++i) retention.enforce({start + i * 1s, kNoon + i * 1s}, [] {});
  }
  std::filesystem::permissions(folder_ / "2001", std::filesystem::perms(0755));
  EXPECT_EQ(log.count("cannot delete"), 1u);
  EXPECT_EQ(log.count("2001/cam.mp4: Permission denied; files that keep no longer allows, and "
                      "are still there: 2"),
            1u);
  retention.enforce({start + 5s, kNoon + 5s}, [] {});
  EXPECT_THAT(names(), ElementsAre("2001/cam.3.mp4"));
  EXPECT_EQ(log.count("gate: deleting old files: running again"), 1u);
}

}  // namespace
}  // namespace framelane
