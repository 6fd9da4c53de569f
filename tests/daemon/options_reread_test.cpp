#include "daemon/options_reread.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <semaphore>
#include <stdexcept>
#include <utility>

#include "daemon/supervisor.hpp"
#include "pipeline/base/abandoned_threads.hpp"
#include "tests/daemon/fake_clock.hpp"
#include "tests/daemon/missing_source.hpp"
#include "tests/daemon/one_device.hpp"
#include "tests/pipeline/base/wait.hpp"

namespace framelane {
namespace {

using namespace std::chrono_literals;
using Progress = OptionsReread::Progress;

/// A file server that answers one call each time it is let to.
struct SlowServer {
  std::counting_semaphore<> answers{0};
  std::atomic<int> asked{0};
  std::atomic<int> answered{0};

  static RereadOptions reread(std::shared_ptr<SlowServer> server) {
    return [server = std::move(server)](const std::string& feed) -> std::optional<FeedOptions> {
      ++server->asked;
      server->answers.acquire();
      FeedOptions options;
      options.name = feed;
      options.ring = ++server->answered;
      return options;
    };
  }
};

class OptionsRereadTest : public ::testing::Test {
 protected:
  bool comes_to(Progress progress) {
    return testing::comes_true([&] { return reread_.poll(clock_.now(), options_) == progress; });
  }

  FakeClock clock_;
  const std::shared_ptr<SlowServer> server_ = std::make_shared<SlowServer>();
  OptionsReread reread_{"gate", SlowServer::reread(server_)};
  FeedOptions options_;
};

TEST_F(OptionsRereadTest, WhatIsReadInTimeIsReturnedAndTheNextCallReadsAgain) {
  EXPECT_EQ(reread_.poll(clock_.now(), options_), Progress::kReading);
  server_->answers.release();
  EXPECT_TRUE(comes_to(Progress::kRead));
  EXPECT_EQ(options_.name, "gate");
  EXPECT_EQ(options_.ring, 1);
  server_->answers.release();
  EXPECT_TRUE(comes_to(Progress::kRead));
  EXPECT_EQ(options_.ring, 2);
}

TEST_F(OptionsRereadTest, WhatComesTooLateIsLeftOutAndNoSecondThreadGetsStuck) {
  const std::uint64_t abandoned = threads_abandoned();
  const std::uint64_t stuck = threads_stuck();
  for (int restart = 0; restart < 3; ++restart) {
    EXPECT_EQ(reread_.poll(clock_.now(), options_), Progress::kReading);
    clock_.advance(OptionsReread::kPatience);
    EXPECT_EQ(reread_.poll(clock_.now(), options_), Progress::kNothing);
  }
  EXPECT_EQ(threads_abandoned(), abandoned + 1);
  EXPECT_EQ(threads_stuck(), stuck + 1);
  EXPECT_TRUE(testing::comes_true([this] { return server_->asked == 1; }));
  server_->answers.release(2);
  EXPECT_TRUE(testing::comes_true([this] { return server_->answered == 1; }));
  EXPECT_TRUE(testing::comes_true([stuck] { return threads_stuck() == stuck; }));
  EXPECT_TRUE(comes_to(Progress::kRead));
}

TEST(OptionsRereadFailureTest, ItsFailureLeavesTheOptionsAsTheyAre) {
  OptionsReread reread("gate", [](const std::string&) -> std::optional<FeedOptions> {
    throw std::runtime_error("no memory");
  });
  FeedOptions options;
  Progress progress = Progress::kReading;
  EXPECT_TRUE(testing::comes_true([&] {
    progress = reread.poll(OptionsReread::Clock::now(), options);
    return progress != Progress::kReading;
  }));
  EXPECT_EQ(progress, Progress::kNothing);
}

// Every restart reads the feed's secrets, and the supervisor looks after all feeds.
TEST(SupervisorTest, ItsLoopTurnsWhileTheSecretsOfAFeedCannotBeRead) {
  const FeedOptions feed = testing::feed_without_source();
  const auto server = std::make_shared<SlowServer>();
  FakeClock clock;
  Supervisor supervisor({feed}, testing::one_device(make_cpu_device()),
                        {.reread = SlowServer::reread(server), .now = clock.function()});
  const FeedView view = supervisor.feeds()[0];
  const auto& failures = view.stats->reconnects;
  supervisor.start();
  ASSERT_TRUE(testing::comes_true([&] { return supervisor.ready(); }));
  ASSERT_TRUE(testing::comes_true([&] { return failures[index_of(IoFault::kIo)] == 1; }));
  supervisor.restart("gate");
  ASSERT_TRUE(testing::comes_true([&] { return server->asked == 1; }));
  clock.advance(Supervisor::kMaxHeartbeatAge);
  EXPECT_TRUE(testing::comes_true([&] { return supervisor.heartbeat_age() == 0s; }));
  // It goes on with the options that it had: its source cannot be opened a second time.
  EXPECT_TRUE(testing::comes_true([&] { return failures[index_of(IoFault::kIo)] == 2; }));
  EXPECT_EQ(supervisor.feeds()[0].options->input.url, feed.input.url);
  server->answers.release();
  EXPECT_TRUE(testing::comes_true([&] { return server->answered == 1; }));
}

}  // namespace
}  // namespace framelane
