#include "pipeline/output/retention.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <new>
#include <string>

#include "pipeline/base/abandoned_threads.hpp"
#include "tests/pipeline/base/log_capture.hpp"
#include "tests/pipeline/base/no_threads.hpp"
#include "tests/pipeline/output/retention_fixture.hpp"

namespace framelane {
namespace {

using namespace testing;  // of framelane
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RetentionTest : public ::testing::Test {
 protected:
  std::unique_ptr<KeptFiles> keep(Retention& retention, const SegmentOptions& keep) {
    return retention.keep(FilePattern(folder_ / "cam-%s.ts"), keep, "gate", stats_);
  }
  std::string write(int number, std::size_t bytes = 100) {
    const std::string path = folder_ / ("cam-" + std::to_string(number) + ".ts");
    write_aged(path, kNoon + std::chrono::seconds(number), bytes);
    return path;
  }
  std::set<std::string> names() const { return names_in(folder_ / ""); }

  const TempFolder folder_;
  const std::shared_ptr<RetentionStats> stats_ = std::make_shared<RetentionStats>();
};

TEST_F(RetentionTest, OldFilesGoWhenTheOutputStartsAndAsItWrites) {
  Retention retention;
  write(1);
  write(2);
  const auto kept = keep(retention, keep_up_to(100));
  EXPECT_TRUE(comes_true([&] { return names().size() == 1; }));
  kept->completed(write(3));
  EXPECT_TRUE(comes_true([&] { return !std::filesystem::exists(folder_ / "cam-2.ts"); }));
  EXPECT_THAT(names(), ElementsAre("cam-3.ts"));
}

TEST_F(RetentionTest, WhatAnOutputSaidLastIsDoneBeforeTheStop) {
  Retention retention;
  {
    const auto kept = keep(retention, keep_up_to(100));
    for (int i = 1; i <= 100; ++i) kept->completed(write(i));
  }
  retention.stop();
  EXPECT_THAT(names(), ElementsAre("cam-100.ts"));
}

TEST_F(RetentionTest, AnOutputThatHasLeftKeepsItsFiles) {
  std::atomic<int> measured{0};
  std::atomic<std::int64_t> free{1000};
  Retention retention([&](const std::string& folder) {
    ++measured;
    return DiskSpace{.device = device_of(folder), .whole = 1000, .free = free};
  });
  const SegmentOptions keep_half = keep_free({.bytes = 500});
  write(1);
  write(2);
  std::unique_ptr<KeptFiles> leaves = keep(retention, keep_half);
  leaves->look_again(true);
  ASSERT_TRUE(comes_true([&] { return measured > 0; }));  // so its files are known
  leaves.reset();
  write_aged(folder_ / "dog-3.ts", kNoon + 3s);
  write_aged(folder_ / "dog-4.ts", kNoon + 4s);
  const auto stays = retention.keep(FilePattern(folder_ / "dog-%s.ts"), keep_half, "dog",
                                    std::make_shared<RetentionStats>());
  free = 0;
  stays->look_again(true);
  ASSERT_TRUE(comes_true([&] { return !std::filesystem::exists(folder_ / "dog-3.ts"); }));
  EXPECT_THAT(names(), ElementsAre("cam-1.ts", "cam-2.ts", "dog-4.ts"));
}

TEST_F(RetentionTest, AnOutputThatCannotStartAgainIsForgotten) {
  Retention retention;
  const auto stays = keep(retention, keep_up_to(100));
  auto stats = std::make_shared<RetentionStats>();
  const std::weak_ptr<RetentionStats> ended = stats;
  retention.keep(FilePattern(folder_ / "dog-%s.ts"), keep_up_to(100), "dog", stats).reset();
  stats.reset();
  EXPECT_TRUE(comes_true([&] {
    stays->look_again(false);  // else the thread looks up once a minute
    return ended.expired();
  }));
}

TEST_F(RetentionTest, WhatFailsAgainAndAgainIsLoggedOnce) {
  std::atomic<int> tries{0};
  Retention retention([&](const std::string& folder) {
    if (++tries <= 3) throw std::bad_alloc();
    return DiskSpace{.device = device_of(folder), .whole = 1000, .free = 0};
  });
  write(1);
  write(2);
  const LogCapture log;
  const auto kept = keep(retention, keep_free({.bytes = 1}));
  EXPECT_TRUE(comes_true([&] {
    kept->look_again(true);
    return names().size() == 1;
  }));
  retention.stop();  // so that nothing is logged while that is counted
  EXPECT_EQ(log.count("deleting old files: "), 1u);
}

TEST_F(RetentionTest, AnOutputThatStartsAgainGoesOnAlthoughItsAbandonedRunLeavesLater) {
  Retention retention;
  std::unique_ptr<KeptFiles> abandoned = keep(retention, keep_up_to(100));
  const auto kept = keep(retention, keep_up_to(100));
  abandoned.reset();
  kept->completed(write(1));
  kept->completed(write(2));
  EXPECT_TRUE(comes_true([&] { return names().size() == 1; }));
}

TEST_F(RetentionTest, AThreadThatIsRefusedDelaysTheDeletionAndNotTheOutput) {
  Retention retention;
  write(1);
  write(2);
  std::unique_ptr<KeptFiles> kept;
  {
    const NoThreads refused;
    const LogCapture log;
    kept = keep(retention, keep_up_to(100));
    for (int i = 0; i < 100; ++i) retention.watch();
    kept->completed(write(3));
    EXPECT_EQ(log.count("the thread that deletes old files does not start"), 1u);
    EXPECT_LT(stats_->counts()[index_of(RetentionFault::kDelete)], 10u);  // not at each turn
  }
  EXPECT_THAT(stats_->reason(), HasSubstr("does not start: threads or memory are short"));
  EXPECT_EQ(names().size(), 3u);
  EXPECT_TRUE(comes_true([&] {
    retention.watch();
    return names().size() == 1 && stats_->reason().empty();
  }));
  EXPECT_THAT(names(), ElementsAre("cam-3.ts"));
}

/// A file system whose calls hang until it is let go.
struct Hang {
  std::atomic<bool> reached{false};
  std::atomic<bool> gone{false};
};

TEST_F(RetentionTest, ACallThatHangsHoldsUpNeitherTheOutputNorTheStop) {
  const auto hang = std::make_shared<Hang>();
  const std::uint64_t abandoned_before = threads_abandoned();
  const std::uint64_t stuck_before = threads_stuck();
  {
    Retention retention([hang](const std::string&) {
      hang->reached = true;
      hang->gone.wait(false);
      return DiskSpace{};
    });
    const auto kept = keep(retention, keep_free({.bytes = 1}));
    kept->look_again(true);
    ASSERT_TRUE(comes_true([&] { return hang->reached.load(); }));
    for (int i = 1; i <= 100; ++i) kept->completed(write(i));
    kept->look_again(true);
    const LogCapture log;
    retention.stop();
    EXPECT_EQ(log.count("did not end when asked to and was abandoned"), 1u);
  }
  EXPECT_EQ(threads_abandoned(), abandoned_before + 1);
  EXPECT_EQ(threads_stuck(), stuck_before + 1);
  hang->gone = true;
  hang->gone.notify_all();
  // The thread is the last that has this.
  EXPECT_TRUE(comes_true([&] { return hang.use_count() == 1; }));
  EXPECT_EQ(threads_stuck(), stuck_before);
}

}  // namespace
}  // namespace framelane
