#include "pipeline/frames/frame_ring.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <stop_token>
#include <thread>

namespace framelane {
namespace {

class FrameRingTest : public ::testing::Test {
 protected:
  std::uint32_t ready() const { return (*stats_.ring_jobs())[index_of(RingState::kReady)]; }

  /// Publishes a job that carries `pts`, converted as a stage would have left it.
  bool publish(FrameRing& ring, std::int64_t pts) {
    auto place = ring.try_acquire();
    if (!place) return false;
    (*place)->input.pts = pts;
    ++(*stats_.ring_jobs())[index_of(RingState::kReady)];
    return place->publish();
  }

  FeedStats stats_{"feed", {{"a"}, {"b"}}, {}, 1};
};

TEST_F(FrameRingTest, EveryConsumerSeesEveryJobInOrder) {
  FrameRing ring(4, 2, stats_);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(publish(ring, i));
  for (int consumer = 0; consumer < 2; ++consumer) {
    for (int i = 0; i < 4; ++i) EXPECT_EQ((*ring.next(consumer))->input.pts, i);
  }
}

TEST_F(FrameRingTest, AConsumerThatIsAddedSeesTheJobsFromItsAdmissionOn) {
  FrameRing ring(4, 1, stats_);
  ASSERT_TRUE(publish(ring, 0));
  const int added = ring.add_consumer();
  EXPECT_EQ(added, 1);
  ASSERT_TRUE(publish(ring, 1));
  ring.admit(added);
  ASSERT_TRUE(publish(ring, 2));
  EXPECT_EQ((*ring.next(added))->input.pts, 2);
  for (int i = 0; i < 3; ++i) EXPECT_EQ((*ring.next(0))->input.pts, i);
}

TEST_F(FrameRingTest, AConsumerThatIsDismissedHasTheJobsBeforeAndThenNone) {
  FrameRing ring(2, 2, stats_);
  ASSERT_TRUE(publish(ring, 0));
  ring.dismiss(0);
  ASSERT_TRUE(publish(ring, 1));
  for (int i = 0; i < 2; ++i) EXPECT_EQ((*ring.next(1))->input.pts, i);
  EXPECT_FALSE(ring.try_acquire());
  EXPECT_EQ((*ring.next(0))->input.pts, 0);
  EXPECT_FALSE(ring.next(0));
  EXPECT_TRUE(ring.try_acquire());
}

TEST_F(FrameRingTest, AnIndexIsGivenAgainWhenItsConsumerHasSeenTheEnd) {
  FrameRing ring(2, 2, stats_);
  ASSERT_TRUE(publish(ring, 0));
  ring.dismiss(0);
  EXPECT_EQ(ring.add_consumer(), 2);
  { const auto last = ring.next(0); }
  EXPECT_FALSE(ring.next(0));
  EXPECT_EQ(ring.add_consumer(), 0);
}

TEST_F(FrameRingTest, AConsumerThatWaitsForItsAdmissionEndsWithTheRing) {
  FrameRing ring(2, 1, stats_);
  const int added = ring.add_consumer();
  std::thread consumer([&] { EXPECT_FALSE(ring.next(added)); });
  ASSERT_TRUE(publish(ring, 0));
  ring.close();
  consumer.join();
  { const auto job = ring.next(0); }
}

TEST_F(FrameRingTest, UnusedPlaceReturnsItself) {
  FrameRing ring(1, 1, stats_);
  { auto unused = ring.try_acquire(); }
  EXPECT_TRUE(publish(ring, 0));
}

TEST_F(FrameRingTest, PlaceIsFreeOnlyWhenTheLastConsumerHasLetGo) {
  FrameRing ring(1, 2, stats_);
  ASSERT_TRUE(publish(ring, 0));
  { auto first = ring.next(0); }
  EXPECT_FALSE(ring.try_acquire());
  { auto second = ring.next(1); }
  EXPECT_TRUE(ring.try_acquire());
}

TEST_F(FrameRingTest, LeavingJobsAreTakenOffTheReadyOnes) {
  FrameRing ring(2, 1, stats_);
  ASSERT_TRUE(publish(ring, 0));
  ASSERT_TRUE(publish(ring, 1));
  EXPECT_EQ(ready(), 2u);
  { auto job = ring.next(0); }
  EXPECT_EQ(ready(), 1u);
}

TEST_F(FrameRingTest, LastReleaseLetsGoOfTheInput) {
  FrameRing ring(1, 1, stats_);
  AVBufferRef* buffer = av_buffer_alloc(16);
  BufferRef kept = BufferRef::adopt(av_buffer_ref(buffer));
  {
    auto place = ring.try_acquire();
    (*place)->input.buffer = BufferRef::adopt(buffer);
    ++(*stats_.ring_jobs())[index_of(RingState::kReady)];
    ASSERT_TRUE(place->publish());
  }
  EXPECT_EQ(av_buffer_get_ref_count(kept.get()), 2);
  { auto job = ring.next(0); }
  EXPECT_EQ(av_buffer_get_ref_count(kept.get()), 1);
}

TEST_F(FrameRingTest, APlanGoesWithItsLastJob) {
  FrameRing ring(2, 1, stats_);
  auto plan = std::make_shared<const Plan>();
  for (int i = 0; i < 2; ++i) {
    auto place = ring.try_acquire();
    (*place)->plan = plan;
    ++(*stats_.ring_jobs())[index_of(RingState::kReady)];
    ASSERT_TRUE(place->publish());
  }
  const std::weak_ptr<const Plan> watched = std::exchange(plan, nullptr);
  { auto first = ring.next(0); }
  EXPECT_FALSE(watched.expired());
  { auto second = ring.next(0); }
  EXPECT_TRUE(watched.expired());
}

TEST_F(FrameRingTest, AnUnusedPlaceLetsGoOfItsPlan) {
  FrameRing ring(1, 1, stats_);
  auto plan = std::make_shared<const Plan>();
  const std::weak_ptr<const Plan> watched = plan;
  {
    auto unused = ring.try_acquire();
    (*unused)->plan = std::exchange(plan, nullptr);
  }
  EXPECT_TRUE(watched.expired());
}

TEST_F(FrameRingTest, AcquireWaitsUntilAPlaceIsFree) {
  FrameRing ring(1, 1, stats_);
  ASSERT_TRUE(publish(ring, 0));
  std::jthread consumer([&ring] { auto job = ring.next(0); });
  EXPECT_TRUE(ring.acquire({}));
}

TEST_F(FrameRingTest, StopEndsAnAcquireThatWaits) {
  FrameRing ring(1, 1, stats_);
  ASSERT_TRUE(publish(ring, 0));
  std::stop_source stop;
  std::jthread stopper([&stop] { stop.request_stop(); });
  EXPECT_FALSE(ring.acquire(stop.get_token()));
}

TEST_F(FrameRingTest, TheProducerCanWaitForOneConsumerAlone) {
  FrameRing ring(2, 2, stats_);
  ring.wait_released(1, {});  // at once: there are no jobs
  ASSERT_TRUE(publish(ring, 0));
  std::atomic<bool> released{false};
  std::thread consumer([&] {
    auto job = ring.next(1);
    released = true;
  });
  ring.wait_released(1, {});  // the other consumer has not had the job
  EXPECT_TRUE(released);
  consumer.join();
  EXPECT_EQ((*ring.next(0))->input.pts, 0);
}

TEST_F(FrameRingTest, AStopOrACloseEndsTheWaitForAConsumer) {
  FrameRing ring(2, 1, stats_);
  ASSERT_TRUE(publish(ring, 0));
  std::stop_source stop;
  {
    const std::jthread stopper([&stop] { stop.request_stop(); });
    ring.wait_released(0, stop.get_token());
  }
  const std::jthread closer([&ring] { ring.close(); });
  ring.wait_released(0, {});
}

TEST_F(FrameRingTest, ClosedRingHandsOutWhatWasPublishedAndThenEnds) {
  FrameRing ring(4, 1, stats_);
  ASSERT_TRUE(publish(ring, 7));
  ring.close();
  EXPECT_EQ((*ring.next(0))->input.pts, 7);
  EXPECT_FALSE(ring.next(0));
}

TEST_F(FrameRingTest, PublishingIntoAClosedRingIsRefused) {
  FrameRing ring(4, 1, stats_);
  auto place = ring.try_acquire();
  ring.close();
  EXPECT_FALSE(place->publish());
  EXPECT_FALSE(ring.next(0));
}

TEST_F(FrameRingTest, CloseWakesAConsumerThatWaits) {
  FrameRing ring(1, 1, stats_);
  std::jthread closer([&ring] { ring.close(); });
  EXPECT_FALSE(ring.next(0));
}

TEST_F(FrameRingTest, ThreadsPassEveryJobThroughASmallRing) {
  constexpr int kJobs = 5000;
  FrameRing ring(2, 2, stats_);
  std::array<std::int64_t, 2> sums{};
  {
    std::vector<std::jthread> consumers;
    for (int consumer = 0; consumer < 2; ++consumer) {
      consumers.emplace_back([&ring, &sums, consumer] {
        while (auto job = ring.next(consumer)) sums[consumer] += (*job)->input.pts;
      });
    }
    for (int i = 0; i < kJobs; ++i) {
      auto place = ring.acquire({});
      (*place)->input.pts = i;
      ++(*stats_.ring_jobs())[index_of(RingState::kReady)];
      ASSERT_TRUE(place->publish());
    }
    ring.close();
  }
  constexpr std::int64_t kSum = std::int64_t{kJobs} * (kJobs - 1) / 2;
  EXPECT_EQ(sums[0], kSum);
  EXPECT_EQ(sums[1], kSum);
  EXPECT_EQ(ready(), 0u);
}

}  // namespace
}  // namespace framelane
