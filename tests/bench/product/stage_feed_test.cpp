#include "bench/product/stage_feed.hpp"

#include <gmock/gmock.h>

#include <array>
#include <atomic>
#include <numeric>

#include "bench/harness/pictures.hpp"
#include "bench/product/stage_work.hpp"
#include "pipeline/stage/cpu_stage.hpp"
#include "tests/pipeline/base/no_threads.hpp"

namespace framelane::bench {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;

const Size kSmall{"", 32, 18};

class StageFeedTest : public ::testing::Test {
 protected:
  std::unique_ptr<BenchFeed> make_feed(const StageShape& shape) {
    return std::make_unique<BenchFeed>(*device_, std::span(&convert_, 1), shape, frames_,
                                       std::span(&targets_, 1));
  }

  void expect_made(const Conversion& convert, int number, const PooledImage& image) {
    const ConstImageView source = as_const(frames_[static_cast<std::size_t>(number % 3)].image);
    const PlainImage expected = reference_result(convert, source);
    EXPECT_EQ(first_difference(as_const(expected.image), as_const(image.image)), "");
  }

  const Conversion convert_ = conversion(PixelFormat::kBgra, PixelFormat::kNv12, kSmall);
  const std::shared_ptr<Device> device_ = std::make_shared<CpuDevice>(1);
  FramePool sources_, targets_;
  const std::vector<PooledImage> frames_ = make_frames(sources_, convert_.source, kSmall, 3);
};

TEST_F(StageFeedTest, ARunHasAFrameForEveryLaneAndOneMoreAtLeast) {
  const auto feed = make_feed({.lanes = 4, .ring = 2});
  const FeedRun run = feed->run(Clock::now());
  EXPECT_EQ(run.problem, "");
  EXPECT_EQ(run.frames, 5);
  EXPECT_EQ(run.back.size(), 5u);
  EXPECT_EQ(run.latencies.size(), 5u);
  const FeedStats::Ledger ledger = feed->stats().ledger();
  EXPECT_EQ(ledger.encodes[0].in, 5u);
  EXPECT_EQ(ledger.encodes[0].out, 5u);
}

TEST_F(StageFeedTest, TheLastResultsAreHeldAndRight) {
  const auto feed = make_feed({.lanes = 4});
  feed->feed().hold_last_results(2);
  EXPECT_EQ(feed->run(Clock::now()).problem, "");
  std::vector<int> numbers;
  for (const auto& [number, images, luma] : feed->feed().last_results()) {
    numbers.push_back(number);
    EXPECT_EQ(images.size(), 1u);
    expect_made(convert_, number, images.at(0));
  }
  EXPECT_THAT(numbers, ElementsAre(3, 4));
}

TEST_F(StageFeedTest, EachEncodeGetsItsOwnPictureOfOneFrame) {
  std::vector<Conversion> conversions(3, convert_);
  conversions[1].scaling = Scaling{{0, 0, 32, 18}, {16, 9}, {0, 0, 16, 9}};
  conversions[2].scaling = Scaling{{2, 2, 20, 10}, {40, 30}, {0, 4, 40, 20}};
  std::array<FramePool, 3> targets;
  BenchFeed feed(*device_, conversions, {.ring = 2}, frames_, targets, true);
  feed.feed().hold_last_results(3);
  EXPECT_EQ(feed.run(Clock::now()).problem, "");
  ASSERT_EQ(feed.feed().last_results().size(), 3u);
  for (const auto& [number, images, luma] : feed.feed().last_results()) {
    ASSERT_EQ(images.size(), 3u);
    for (std::size_t i = 0; i < 3; ++i) expect_made(conversions[i], number, images[i]);
    EXPECT_EQ(luma, luma_of(as_const(images[0].image)));
  }
  const FeedStats::Ledger ledger = feed.stats().ledger();
  ASSERT_EQ(ledger.encodes.size(), 3u);
  for (const auto& encode : ledger.encodes) EXPECT_EQ(encode.out, 4u);
}

TEST_F(StageFeedTest, TheLumaOfTheLastResultsIsHeld) {
  BenchFeed feed(*device_, {&convert_, 1}, {}, frames_, {&targets_, 1}, true);
  feed.feed().hold_last_results(3);
  EXPECT_EQ(feed.run(Clock::now()).problem, "");
  ASSERT_EQ(feed.feed().last_results().size(), 3u);
  for (const auto& [number, images, luma] : feed.feed().last_results()) {
    EXPECT_EQ(luma, luma_of(as_const(images.at(0).image))) << number;
    EXPECT_EQ(luma.samples(), static_cast<std::uint64_t>(convert_.width * convert_.height));
  }
}

TEST_F(StageFeedTest, AFeedWhoseSourceFailsGivesBackWhatItHas) {
  StageFeed feed(*device_, {});
  feed.prepare({&convert_, 1}, FrameMemory::kHost, {&targets_, 1});
  const FeedRun run = feed.run(Clock::now() + std::chrono::hours(1), [this](int number) {
    if (number == 7) throw std::runtime_error("the file has ended");
    InputFrame frame;
    frame.image = as_const(frames_[0].image);
    frame.buffer = frames_[0].buffer;
    return frame;
  });
  EXPECT_EQ(run.problem, "the file has ended");
  EXPECT_EQ(run.back.size(), 7u);
}

TEST_F(StageFeedTest, SeveralFeedsRunSideBySide) {
  std::vector<std::unique_ptr<BenchFeed>> feeds;
  for (int i = 0; i < 3; ++i) feeds.push_back(make_feed({.lanes = 2}));
  const StageFigures figures = run_feeds(feeds, 0);
  EXPECT_EQ(figures.latencies.size(), 3u * 3);
  EXPECT_GT(figures.frames_per_second, 0);
  EXPECT_GT(figures.steady_frames_per_second, 0);
}

TEST(RunFeedsTest, TheProblemOfOneFeedIsThrown) {
  const std::vector<FeedWork> feeds{[](Clock::time_point) { return FeedRun{.frames = 1}; },
                                    [](Clock::time_point) {
                                      return FeedRun{.frames = 1,
                                                     .problem = "a frame takes more than 10 s"};
                                    }};
  EXPECT_THAT([&] { run_feeds(feeds, 0); },
              ::testing::ThrowsMessage<std::runtime_error>("a frame takes more than 10 s"));
}

TEST(RunFeedsTest, WhatAFeedThrowsIsItsProblem) {
  const std::vector<FeedWork> feeds{
      [](Clock::time_point) { return FeedRun{.frames = 1}; },
      [](Clock::time_point) -> FeedRun { throw std::runtime_error("the file has ended"); }};
  EXPECT_THAT([&] { run_feeds(feeds, 0); },
              ::testing::ThrowsMessage<std::runtime_error>("the file has ended"));
}

TEST_F(StageFeedTest, AStopEndsARun) {
  const std::atomic<int> stop{2};
  const auto feed = make_feed({.lanes = 4, .ring = 2});
  feed->feed().end_on(&stop);
  const FeedRun run = feed->run(Clock::now() + std::chrono::hours(1));
  EXPECT_EQ(run.problem, "");
  EXPECT_EQ(run.frames, 5);
}

TEST_F(StageFeedTest, AThreadThatCannotBeStartedIsSaidSo) {
  std::vector<std::unique_ptr<BenchFeed>> feeds;
  feeds.push_back(make_feed({}));
  const testing::NoThreads none;
  const auto says_so = ::testing::ThrowsMessage<std::runtime_error>(
      ::testing::StartsWith("a feed's thread cannot be started: "));
  EXPECT_THAT([&] { run_feeds(feeds, 0); }, says_so);
  EXPECT_THAT([&] { feeds[0]->run(Clock::now()); }, says_so);
}

constexpr std::size_t kInstalled = std::size_t{16} << 30;

TEST(FramesOfTest, EachLaneGetsEveryFrame) {
  for (const Size& size : {kSmall, k1080p, k4K, k8K}) {
    for (const PixelFormat format : {PixelFormat::kBgra, PixelFormat::kI420}) {
      Work work{{conversion(format, PixelFormat::kNv12, size)}, {}};
      for (const int lanes : {1, 2, 3, 4, 5, 6, 8}) {
        work.setups.push_back({.shape = {.lanes = lanes}});
        for (const auto& setup : work.setups) {
          EXPECT_EQ(std::gcd(frames_of(work, kInstalled), setup.shape.lanes), 1)
              << frames_of(work, kInstalled) << " frames, " << setup.shape.lanes << " lanes";
        }
      }
      EXPECT_GE(frames_of(work, kInstalled), 3);
      EXPECT_LE(frames_of(work, kInstalled), 40);
    }
  }
}

TEST(FramesOfTest, LargeFramesAreFew) {
  EXPECT_EQ(
      frames_of({{conversion(PixelFormat::kBgra, PixelFormat::kNv12, k8K)}, {{}}}, kInstalled), 4);
}

TEST(FramesOfTest, LittleMemoryHasFewFrames) {
  const Work work{{conversion(PixelFormat::kBgra, PixelFormat::kNv12, k1080p)}, {{}}};
  EXPECT_EQ(frames_of(work, kInstalled), 13);
  EXPECT_EQ(frames_of(work, std::size_t{256} << 20), 4);
}

/// A frame back every so many milliseconds, from the first on.
FeedRun run_of(int first, int every, int count) {
  FeedRun run;
  for (int i = 0; i < count; ++i) {
    run.back.push_back(Clock::time_point{} + milliseconds(first + every * i));
  }
  return run;
}

TEST(SteadyRateTest, CountsFromWhenAllAreAtWorkToTheEnd) {
  // From 30 ms on, when the second has had its first: every 10 ms to 300 ms of one, to 290 ms of
  // the other, which goes on at half the pace.
  EXPECT_DOUBLE_EQ(steady_rate({run_of(10, 10, 100), run_of(30, 20, 100)},
                               Clock::time_point{} + milliseconds(305)),
                   (27 + 13) / 0.270);
}

TEST(SteadyRateTest, OfFewFramesThereIsNone) {
  const Clock::time_point until = Clock::time_point{} + milliseconds(305);
  EXPECT_EQ(steady_rate({run_of(10, 20, 100)}, until), 0);
  EXPECT_EQ(steady_rate({run_of(10, 10, 100), {}}, until), 0);
}

}  // namespace
}  // namespace framelane::bench
