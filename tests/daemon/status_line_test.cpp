// Not built for ThreadSanitizer: what it tests has one thread.
#include "daemon/status_line.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/daemon/notify_socket.hpp"
#include "tests/pipeline/measure/frame_lines.hpp"

namespace framelane {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// A feed whose counts a test makes.
struct CountedFeed {
  CountedFeed(const std::string& name, bool copies)
      : stats(std::make_shared<FeedStats>(name,
                                          std::vector<FeedStats::EncodeSpec>{{"main", copies}},
                                          std::vector<std::string>{}, copies ? 0 : 1)) {}

  FeedView view() const { return {options, stats}; }
  void deliver() const {
    stats->set_state(FeedState::kRunning, "");
    stats->arrived(stats->run());
  }
  void take(int frames, bool drops) const {
    std::vector<FrameTicket> tickets(1);
    for (int i = 0; i < frames; ++i) {
      open_tickets(stats, stats->run(), testing::frame_lines(*stats), tickets);
      drops ? tickets[0].drop(DropReason::kRingFull) : tickets[0].out();
    }
  }

  std::shared_ptr<FeedOptions> options = std::make_shared<FeedOptions>();
  std::shared_ptr<FeedStats> stats;
};

class StatusLineTest : public ::testing::Test {
 protected:
  StatusLine line_;
  StatusLine::Clock::time_point now_ = StatusLine::Clock::now();
};

TEST_F(StatusLineTest, CountsFeedsThatAreUpAndTheFramesOfAnInterval) {
  const CountedFeed gate("gate", false);
  const CountedFeed yard("yard", false);
  const CountedFeed copied("copied", true);
  const std::vector<FeedView> feeds{gate.view(), yard.view(), copied.view()};
  EXPECT_EQ(line_.text(feeds, now_), "0 of 3 feeds up, 0 frames dropped");
  gate.deliver();
  copied.deliver();
  gate.take(25, false);
  yard.take(1, true);
  EXPECT_EQ(line_.text(feeds, now_ + 2s), "2 of 3 feeds up, 13.0 frames/s, 1 frame dropped");
  EXPECT_EQ(line_.text(feeds, now_ + 4s), "2 of 3 feeds up, 0.0 frames/s, 1 frame dropped");
}

TEST_F(StatusLineTest, AFeedThatOnlyCopiesHasNoFrames) {
  const CountedFeed copied("copied", true);
  copied.deliver();
  EXPECT_EQ(line_.text({copied.view()}, now_), "1 of 1 feed up");
}

TEST_F(StatusLineTest, FeedsThatComeAndGoMakeNoFrames) {
  const CountedFeed gate("gate", false);
  gate.take(100, false);
  line_.text({gate.view()}, now_);
  EXPECT_EQ(line_.text({}, now_ + 1s), "0 of 0 feeds up");
  const CountedFeed again("gate", false);
  again.take(3, false);
  EXPECT_EQ(line_.text({again.view()}, now_ + 2s),
            "0 of 1 feed up, 3.0 frames/s, 0 frames dropped");
}

TEST_F(StatusLineTest, SystemdIsToldEveryTenSeconds) {
  const testing::NotifySocket systemd;
  const CountedFeed copied("copied", true);
  line_.text({copied.view()}, now_);  // which READY=1 is sent with
  line_.update({copied.view()}, now_ + StatusLine::kEvery - 1ms);
  EXPECT_THAT(systemd.heard(), IsEmpty());
  copied.deliver();
  line_.update({copied.view()}, now_ + StatusLine::kEvery);
  EXPECT_THAT(systemd.heard(), ElementsAre("STATUS=1 of 1 feed up"));
  line_.update({copied.view()}, now_ + StatusLine::kEvery + 1ms);
  EXPECT_THAT(systemd.heard(), IsEmpty());
}

}  // namespace
}  // namespace framelane
