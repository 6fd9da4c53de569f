#include "daemon/supervised_feed.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "tests/daemon/fake_clock.hpp"
#include "tests/daemon/missing_source.hpp"
#include "tests/daemon/one_device.hpp"
#include "tests/pipeline/base/wait.hpp"
#include "tests/pipeline/source/media_files.hpp"
#include "tests/pipeline/stage/device_wrapper.hpp"

namespace framelane {
namespace {

using namespace std::chrono_literals;

/// A device on which no feed can be started. Counts how often that was tried.
class BrokenDevice : public DeviceWrapper {
 public:
  explicit BrokenDevice(FeedFault fault) : DeviceWrapper(make_cpu_device()), fault_(fault) {}
  int tries() const { return tries_; }
  std::unique_ptr<Stage> make_stage(FeedStats&, std::optional<int>) override {
    ++tries_;
    throw FeedError(fault_, "the device is broken");
  }

 private:
  const FeedFault fault_;
  int tries_ = 0;
};

class SupervisedFeedTest : public ::testing::Test {
 protected:
  /// A feed that cannot be started.
  void make_feed(FeedFault fault, bool once = false) {
    FeedOptions options = testing::feed_without_source();
    options.once = once;
    device_ = std::make_shared<BrokenDevice>(fault);
    feed_.emplace(std::move(options), testing::one_device(device_), clock_.function(), [] {});
  }
  FeedState state() const { return feed_->view().stats->status().state; }

  FakeClock clock_;
  std::shared_ptr<BrokenDevice> device_;
  std::optional<SupervisedFeed> feed_;
};

TEST_F(SupervisedFeedTest, AFailedFeedStartsAgainWhenItsBackoffIsOver) {
  make_feed(FeedFault::kDevice);
  feed_->start();
  EXPECT_EQ(state(), FeedState::kBackoff);
  clock_.advance(700ms);  // the first wait is one second, more or less by a fifth
  EXPECT_TRUE(feed_->turn());
  EXPECT_EQ(device_->tries(), 1);
  clock_.advance(600ms);
  EXPECT_TRUE(feed_->turn());
  EXPECT_EQ(device_->tries(), 2);
  EXPECT_FALSE(feed_->has_failed());
}

TEST_F(SupervisedFeedTest, EveryWaitIsLongerThanTheLast) {
  make_feed(FeedFault::kDevice);
  feed_->start();
  clock_.advance(1300ms);
  feed_->turn();
  clock_.advance(1300ms);
  feed_->turn();
  EXPECT_EQ(device_->tries(), 2);
  clock_.advance(1300ms);
  feed_->turn();
  EXPECT_EQ(device_->tries(), 3);
}

TEST_F(SupervisedFeedTest, RestartsAreCountedByTheirCause) {
  make_feed(FeedFault::kDevice);
  feed_->start();
  EXPECT_EQ(feed_->view().stats->restarts[index_of(FeedFault::kDevice)], 1U);
}

TEST_F(SupervisedFeedTest, WhatNoRetryMendsIsFinal) {
  make_feed(FeedFault::kConfiguration);
  feed_->start();
  EXPECT_EQ(state(), FeedState::kFailed);
  EXPECT_TRUE(feed_->has_failed());
  clock_.advance(1h);
  EXPECT_FALSE(feed_->turn());
  EXPECT_EQ(device_->tries(), 1);
}

TEST_F(SupervisedFeedTest, WithOnceEveryFailureIsFinal) {
  make_feed(FeedFault::kDevice, true);
  feed_->start();
  EXPECT_TRUE(feed_->has_failed());
  EXPECT_FALSE(feed_->turn());
}

TEST_F(SupervisedFeedTest, ARequestedRestartWaitsForNoBackoff) {
  make_feed(FeedFault::kConfiguration);
  feed_->start();
  feed_->request_restart();
  feed_->turn();
  EXPECT_EQ(device_->tries(), 2);
}

TEST_F(SupervisedFeedTest, AFeedThatOnlyCopiesNeedsNoDevice) {
  FeedOptions options = testing::feed_without_source();
  options.encodes[0].copy_video = true;
  options.device = DeviceChoice{DeviceChoice::Kind::kCuda, 3};
  feed_.emplace(std::move(options), testing::one_device(make_cpu_device()), clock_.function(),
                [] {});
  feed_->start();
  EXPECT_FALSE(feed_->has_failed());
  feed_->drain();
  EXPECT_TRUE(feed_->wait_for(20s));
  feed_->finish();
}

TEST_F(SupervisedFeedTest, AFileIsNotReadAgainIfTheReloadComesJustWhenItHasEnded) {
  FeedOptions options = testing::feed_without_source();
  options.input.url = testing::clip("street_h264.mp4");
  feed_.emplace(options, testing::one_device(make_cpu_device()), clock_.function(), [] {});
  feed_->start();
  ASSERT_TRUE(feed_->wait_for(20s));
  options.encodes[0].name = "other";
  EXPECT_TRUE(feed_->reload(options, {}));
  EXPECT_TRUE(testing::comes_true([this] { return !feed_->turn(); }));
  EXPECT_EQ(state(), FeedState::kEnded);
  EXPECT_EQ(feed_->view().stats->ledger().frames_in, 42U);
  EXPECT_EQ(feed_->view().options->encodes[0].name, "other");
}

/// A feed whose source is stuck in a call: inside "concat:" FFmpeg opens a FIFO by itself, and
/// waits for its writer whatever the deadline is.
class StuckRunsTest : public ::testing::Test {
 protected:
  StuckRunsTest() {
    ::mkfifo(fifo_.c_str(), 0600);
    FeedOptions options;
    options.name = "gate";
    options.input.url = "concat:" + fifo_;
    options.input.timeout = 100ms;
    EncodeOptions live;
    live.name = "live";
    live.codecs = {{"mpeg4", {}}};
    options.encodes = {live};
    feed_.emplace(
        std::move(options), testing::one_device(make_cpu_device()), clock_.function(), [] {},
        FeedDeadlines{.after_cancel = 200ms, .after_deadline = 200ms});
    stats_ = feed_->view().stats;
  }
  ~StuckRunsTest() override {
    feed_->drain();
    EXPECT_TRUE(testing::comes_true([this] {
      let_go();
      return feed_->wait_for(10ms);
    }));
    feed_->finish();
  }
  /// The calls that are stuck return.
  void let_go() const { ::close(::open(fifo_.c_str(), O_RDWR | O_CLOEXEC)); }

  const testing::TempFolder folder_;
  const std::string fifo_ = folder_ / "fifo";
  FakeClock clock_;
  std::optional<SupervisedFeed> feed_;
  std::shared_ptr<const FeedStats> stats_;
};

TEST_F(StuckRunsTest, AFeedWithThreeOfThemStartsAgainWhenTheyEnd) {
  feed_->start();
  for (int runs = 1; runs <= SupervisedFeed::kMaxAbandonedRuns; ++runs) {
    ASSERT_TRUE(testing::comes_true([&] {
      feed_->turn();
      return stats_->abandoned_runs == runs;
    }));
    EXPECT_EQ(stats_->restarts[index_of(FeedFault::kInternal)], static_cast<unsigned>(runs));
    clock_.advance(2min);  // the backoff is over
    EXPECT_TRUE(feed_->turn());
  }
  EXPECT_EQ(stats_->status().state, FeedState::kBackoff);
  const std::string reason = stats_->status().reason;
  EXPECT_EQ(reason.find("3 of its runs are stuck in calls that do not end"), 0U) << reason;
  clock_.advance(1h);
  EXPECT_TRUE(feed_->turn());
  EXPECT_EQ(stats_->status().state, FeedState::kBackoff);
  ASSERT_TRUE(testing::comes_true([this] {
    let_go();
    return stats_->abandoned_runs == 0;
  }));
  EXPECT_TRUE(feed_->turn());
  EXPECT_TRUE(
      testing::comes_true([this] { return stats_->status().state == FeedState::kConnecting; }));
}

}  // namespace
}  // namespace framelane
