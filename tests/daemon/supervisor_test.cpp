#include "daemon/supervisor.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/daemon/fake_clock.hpp"
#include "tests/daemon/missing_source.hpp"
#include "tests/daemon/one_device.hpp"
#include "tests/daemon/stuck_device.hpp"
#include "tests/pipeline/base/wait.hpp"
#include "tests/pipeline/stage/device_wrapper.hpp"

namespace framelane {
namespace {

/// The CPU. A stop is requested while the first feed is being started on it.
class StoppingDevice : public DeviceWrapper {
 public:
  StoppingDevice() : DeviceWrapper(make_cpu_device()) {}
  /// Before the first feed starts.
  void stops(Supervisor& supervisor) { supervisor_ = &supervisor; }
  /// How many feeds have been started. Once the supervisor is done.
  int starts() const { return starts_; }
  std::unique_ptr<Stage> make_stage(FeedStats& stats, std::optional<int> slices) override {
    ++starts_;
    supervisor_->request_stop();
    return device_->make_stage(stats, slices);
  }

 private:
  Supervisor* supervisor_ = nullptr;
  int starts_ = 0;
};

TEST(SupervisorTest, AStopWhileFeedsAreStartedStartsNoFurtherOnes) {
  const auto device = std::make_shared<StoppingDevice>();
  std::vector<FeedOptions> feeds(3, testing::feed_without_source());
  feeds[1].name = "yard";
  feeds[2].name = "roof";
  Supervisor supervisor(std::move(feeds), testing::one_device(device), {});
  device->stops(supervisor);
  supervisor.start();
  ASSERT_TRUE(supervisor.wait_done(std::chrono::minutes(1)));
  EXPECT_EQ(device->starts(), 1);
  EXPECT_TRUE(supervisor.all_succeeded());
}

FeedOptions feed_named(const std::string& name) {
  FeedOptions feed = testing::feed_without_source();
  feed.name = name;
  return feed;
}

/// The CPU, which counts how often a feed is started on it.
class CountingDevice : public DeviceWrapper {
 public:
  CountingDevice() : DeviceWrapper(make_cpu_device()) {}
  std::unique_ptr<Stage> make_stage(FeedStats& stats, std::optional<int> slices) override {
    {
      const std::lock_guard lock(mutex_);
      ++starts_[stats.feed()];
    }
    return device_->make_stage(stats, slices);
  }
  std::map<std::string, int> starts() const {
    const std::lock_guard lock(mutex_);
    return starts_;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, int> starts_;
};

class SupervisorReloadTest : public ::testing::Test {
 protected:
  SupervisorReloadTest() {
    supervisor_.start();
    EXPECT_TRUE(testing::comes_true([&] { return supervisor_.ready(); }));
  }
  using Starts = std::map<std::string, int>;
  bool come_to(const Starts& starts) {
    return testing::comes_true([&] { return device_->starts() == starts; });
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const FeedView& feed : supervisor_.feeds()) names.push_back(feed.options->name);
    return names;
  }

  const std::shared_ptr<CountingDevice> device_ = std::make_shared<CountingDevice>();
  Supervisor supervisor_{{feed_named("gate"), feed_named("yard"), feed_named("roof")},
                         testing::one_device(device_),
                         {}};
};

TEST_F(SupervisorReloadTest, OnlyWhatDiffersIsStartedAgain) {
  const FeedView gate = supervisor_.feeds()[0];
  FeedOptions roof = feed_named("roof");
  roof.ring = 3;
  const auto changes =
      supervisor_.reload({feed_named("door"), std::move(roof), feed_named("gate")}, {});
  ASSERT_TRUE(changes);
  EXPECT_EQ(changes->added, std::vector<std::string>{"door"});
  EXPECT_EQ(changes->changed, std::vector<std::string>{"roof"});
  EXPECT_EQ(changes->removed, std::vector<std::string>{"yard"});
  EXPECT_EQ(changes->unchanged, std::vector<std::string>{"gate"});
  EXPECT_EQ(names(), (std::vector<std::string>{"door", "roof", "gate"}));
  EXPECT_TRUE(come_to({{"gate", 1}, {"yard", 1}, {"roof", 2}, {"door", 1}}));
  const std::vector<FeedView> feeds = supervisor_.feeds();
  EXPECT_EQ(feeds[1].options->ring, 3);
  EXPECT_EQ(feeds[2].options, gate.options);
  EXPECT_EQ(feeds[2].stats, gate.stats);
}

TEST_F(SupervisorReloadTest, AFeedThatComesBackWhileItLeavesIsANewOne) {
  const FeedView yard = supervisor_.feeds()[1];
  ASSERT_TRUE(supervisor_.reload({feed_named("gate"), feed_named("roof")}, {}));
  const auto changes =
      supervisor_.reload({feed_named("gate"), feed_named("yard"), feed_named("roof")}, {});
  EXPECT_EQ(changes->added, std::vector<std::string>{"yard"});
  EXPECT_TRUE(come_to({{"gate", 1}, {"yard", 2}, {"roof", 1}}));
  EXPECT_NE(supervisor_.feeds()[1].stats, yard.stats);
  EXPECT_EQ(yard.stats->status().state, FeedState::kEnded);
}

TEST_F(SupervisorReloadTest, ManyReloadsLeaveTheLastOne) {
  for (int i = 0; i < 50; ++i) {
    FeedOptions roof = feed_named("roof");
    roof.ring = 2 + i % 2;
    std::vector<FeedOptions> feeds{feed_named("gate"), std::move(roof)};
    if (i % 3 == 0) feeds.push_back(feed_named("door"));
    ASSERT_TRUE(supervisor_.reload(std::move(feeds), {}));
  }
  EXPECT_EQ(names(), (std::vector<std::string>{"gate", "roof"}));
  EXPECT_TRUE(testing::comes_true([&] { return supervisor_.feeds()[1].options->ring == 3; }));
  EXPECT_EQ(device_->starts().at("gate"), 1);
}

TEST_F(SupervisorReloadTest, AfterAStopNothingIsReloaded) {
  supervisor_.request_stop();
  EXPECT_FALSE(supervisor_.reload({feed_named("gate")}, {}));
  EXPECT_EQ(names().size(), 3u);
}

TEST(SupervisorTest, AFeedThatHasFailedIsTriedAgainByAReload) {
  FeedOptions feed = feed_named("gate");
  feed.device = DeviceChoice{DeviceChoice::Kind::kCuda, 7};
  const auto device = std::make_shared<CountingDevice>();
  Supervisor supervisor({feed}, testing::one_device(device), {});
  supervisor.start();
  const auto state = [&] { return supervisor.feeds()[0].stats->status().state; };
  ASSERT_TRUE(testing::comes_true([&] { return state() == FeedState::kFailed; }));
  EXPECT_EQ(supervisor.reload({feed}, {})->changed, std::vector<std::string>{"gate"});
  feed.device = DeviceChoice{DeviceChoice::Kind::kCpu};
  EXPECT_EQ(supervisor.reload({feed}, {})->changed, std::vector<std::string>{"gate"});
  EXPECT_TRUE(testing::comes_true([&] { return device->starts()["gate"] == 1; }));
}

// The sanitizers bring a heap of their own.
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

std::size_t resident_bytes() {
  std::size_t size = 0;
  std::size_t resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

TEST(SupervisorTest, FreedMemoryIsGivenBackToTheSystem) {
  constexpr std::size_t kBlock = 16 << 10;
  constexpr std::size_t kBlocks = 4096;
  FakeClock clock;
  Supervisor supervisor({}, testing::one_device(std::make_shared<StuckDevice>()),
                        {.now = clock.function()});
  supervisor.start();
  ASSERT_TRUE(testing::comes_true([&] { return supervisor.ready(); }));
  std::vector<std::vector<char>> blocks(kBlocks, std::vector<char>(kBlock));
  for (std::size_t i = 0; i < kBlocks; ++i) {
    if (i % 64 != 0) std::vector<char>().swap(blocks[i]);  // what is left keeps the heap long
  }
  const std::size_t before = resident_bytes();
  clock.advance(Supervisor::kTrimEvery);
  EXPECT_TRUE(
      testing::comes_true([&] { return resident_bytes() + kBlock * kBlocks / 2 < before; }));
}

#endif

}  // namespace
}  // namespace framelane
