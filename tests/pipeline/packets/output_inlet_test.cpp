#include "pipeline/packets/output_inlet.hpp"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <new>
#include <stop_token>
#include <vector>

#include "pipeline/av/av_ptr.hpp"

namespace framelane {
namespace {

using namespace std::chrono_literals;

class OutputInletTest : public ::testing::Test {
 protected:
  OutputInletTest() {
    if (av_new_packet(packet_.get(), 100) < 0) throw std::bad_alloc();
    auto with_audio = std::make_shared<MediaFormat>();
    with_audio->audio.emplace();
    with_audio_ = std::move(with_audio);
  }

  /// An inlet whose output takes all audio or none.
  std::unique_ptr<OutputInlet> make(int capacity, bool blocks, bool takes_audio = true) {
    return std::make_unique<OutputInlet>(capacity, stats_, blocks,
                                         [takes_audio](const MediaFormat&) { return takes_audio; });
  }
  void push(OutputInlet& inlet, bool keyframe, const std::stop_token& stop = {}) {
    packet_->flags = keyframe ? AV_PKT_FLAG_KEY : 0;
    inlet.push(*packet_, StreamKind::kVideo, format_, stop);
  }
  /// Pushes a keyframe on another thread.
  std::future<void> push_elsewhere(OutputInlet& inlet, const std::stop_token& stop = {}) {
    return std::async(std::launch::async, [this, &inlet, stop] { push(inlet, true, stop); });
  }
  PacketQueue::Pop pop(OutputInlet& inlet) { return inlet.pop(popped_, 0ms, {}); }
  std::uint64_t dropped(PacketDrop reason) const {
    return stats_.packets_dropped[index_of(reason)].load();
  }
  std::uint64_t dropped() const {
    std::uint64_t all = 0;
    for (const auto& count : stats_.packets_dropped) all += count.load();
    return all;
  }

  OutputStats stats_{"out"};
  const PacketPtr packet_ = make_packet();
  MediaPacket popped_;
  const MediaFormatRef format_ = std::make_shared<MediaFormat>();
  MediaFormatRef with_audio_;
};

TEST_F(OutputInletTest, AudioThatTheOutputDoesNotTakeIsLeftOutUncounted) {
  const auto inlet = make(4, true, false);
  inlet->push(*packet_, StreamKind::kAudio, with_audio_, {});
  EXPECT_EQ(pop(*inlet), PacketQueue::Pop::kTimeout);
  EXPECT_EQ(dropped(), 0u);
}

TEST_F(OutputInletTest, AudioThatTheOutputTakesIsQueued) {
  const auto inlet = make(4, true);
  inlet->push(*packet_, StreamKind::kAudio, with_audio_, {});
  ASSERT_EQ(pop(*inlet), PacketQueue::Pop::kPacket);
  EXPECT_EQ(popped_.stream, StreamKind::kAudio);
}

TEST_F(OutputInletTest, AFullQueueLosesPacketsUpToTheNextKeyframe) {
  const auto inlet = make(1, false);
  push(*inlet, true);
  push(*inlet, false);  // finds it full
  ASSERT_EQ(pop(*inlet), PacketQueue::Pop::kPacket);
  push(*inlet, false);  // there is room, but what it refers to is lost
  EXPECT_EQ(dropped(PacketDrop::kQueueFull), 1u);
  EXPECT_EQ(dropped(PacketDrop::kWaitKeyframe), 1u);
  EXPECT_EQ(stats_.dependents_dropped, 1u);
  push(*inlet, true);
  ASSERT_EQ(pop(*inlet), PacketQueue::Pop::kPacket);
  push(*inlet, false);
  EXPECT_EQ(pop(*inlet), PacketQueue::Pop::kPacket);
  EXPECT_EQ(dropped(), 2u);
}

TEST_F(OutputInletTest, AKeyframeThatFindsTheQueueFullIsLostToo) {
  const auto inlet = make(1, false);
  push(*inlet, true);
  push(*inlet, true);
  ASSERT_EQ(pop(*inlet), PacketQueue::Pop::kPacket);
  push(*inlet, false);
  EXPECT_EQ(dropped(PacketDrop::kQueueFull), 1u);
  EXPECT_EQ(dropped(PacketDrop::kWaitKeyframe), 1u);
}

TEST_F(OutputInletTest, AProducerWaitsForAnOutputThatBlocks) {
  const auto inlet = make(1, true);
  push(*inlet, true);
  auto pushed = push_elsewhere(*inlet);
  EXPECT_EQ(inlet->pop(popped_, 10s, {}), PacketQueue::Pop::kPacket);
  EXPECT_EQ(inlet->pop(popped_, 10s, {}), PacketQueue::Pop::kPacket);
  pushed.get();
  EXPECT_EQ(dropped(), 0u);
}

TEST_F(OutputInletTest, WhetherProducersWaitCanBeChanged) {
  const auto inlet = make(1, true);
  inlet->set_blocks(false);
  push(*inlet, true);
  push(*inlet, true);  // would never return
  EXPECT_EQ(dropped(PacketDrop::kQueueFull), 1u);
}

TEST_F(OutputInletTest, NobodyWaitsForAnOutputInTrouble) {
  const auto inlet = make(1, true);
  push(*inlet, true);
  auto pushed = push_elsewhere(*inlet);
  inlet->interrupted();
  pushed.get();
  push(*inlet, true);
  EXPECT_EQ(dropped(PacketDrop::kQueueFull), 2u);
}

TEST_F(OutputInletTest, ProducersWaitAgainOnceTheOutputIsOpen) {
  const auto inlet = make(1, true);
  inlet->interrupted();
  inlet->opened();
  push(*inlet, true);
  auto pushed = push_elsewhere(*inlet);
  EXPECT_EQ(inlet->pop(popped_, 10s, {}), PacketQueue::Pop::kPacket);
  EXPECT_EQ(inlet->pop(popped_, 10s, {}), PacketQueue::Pop::kPacket);
  pushed.get();
  EXPECT_EQ(dropped(), 0u);
}

TEST_F(OutputInletTest, AResumeRequestIsTakenOnce) {
  const auto inlet = make(1, true);
  EXPECT_FALSE(inlet->take_resume_request());
  inlet->request_resume();
  EXPECT_TRUE(inlet->take_resume_request());
  EXPECT_FALSE(inlet->take_resume_request());
}

TEST_F(OutputInletTest, AnOutputThatHasOpenedNeedsNoResume) {
  const auto inlet = make(1, true);
  inlet->request_resume();
  inlet->opened();
  EXPECT_FALSE(inlet->take_resume_request());
}

TEST_F(OutputInletTest, WhatIsQueuedCanBePoppedAfterFinish) {
  const auto inlet = make(2, true);
  push(*inlet, true);
  inlet->finish();
  EXPECT_EQ(pop(*inlet), PacketQueue::Pop::kPacket);
  EXPECT_EQ(pop(*inlet), PacketQueue::Pop::kEnd);
}

TEST_F(OutputInletTest, TheEndCountsWhatIsQueuedAndWhatIsPushedLater) {
  const auto inlet = make(4, true);
  for (int i = 0; i < 3; ++i) push(*inlet, true);
  inlet->end(PacketDrop::kWriteFailed);
  EXPECT_EQ(dropped(PacketDrop::kWriteFailed), 3u);
  push(*inlet, true);
  EXPECT_EQ(dropped(PacketDrop::kWriteFailed), 4u);
  EXPECT_EQ(pop(*inlet), PacketQueue::Pop::kEnd);
  EXPECT_EQ(stats_.queue_packets, 0u);
}

TEST_F(OutputInletTest, TheEndReleasesAProducerThatWaits) {
  const auto inlet = make(1, true);
  push(*inlet, true);
  auto pushed = push_elsewhere(*inlet);
  inlet->end(PacketDrop::kWriteFailed);
  pushed.get();
  EXPECT_EQ(dropped(PacketDrop::kWriteFailed), 2u);
}

TEST_F(OutputInletTest, AStopReleasesAProducerThatWaits) {
  const auto inlet = make(1, true);
  push(*inlet, true);
  std::stop_source stop;
  auto pushed = push_elsewhere(*inlet, stop.get_token());
  stop.request_stop();
  pushed.get();
  EXPECT_EQ(dropped(PacketDrop::kStop), 1u);
}

TEST_F(OutputInletTest, AStuckOutputsQueueIsDroppedOnceAndTheNextRunsIsShown) {
  const auto stuck = make(4, true);
  push(*stuck, true);
  push(*stuck, false);
  stuck->end(PacketDrop::kWriteFailed);
  const auto present = make(4, true);
  push(*present, true);
  pop(*stuck);  // its thread's call has returned
  stuck->end(PacketDrop::kStop);
  EXPECT_EQ(dropped(), 2u);
  EXPECT_EQ(stats_.queue_packets, 1u);
}

TEST_F(OutputInletTest, TheLengthOfTheQueueIsShown) {
  const auto inlet = make(4, true);
  push(*inlet, true);
  push(*inlet, false);
  EXPECT_EQ(stats_.queue_packets, 2u);
  pop(*inlet);
  EXPECT_EQ(stats_.queue_packets, 1u);
}

}  // namespace
}  // namespace framelane
