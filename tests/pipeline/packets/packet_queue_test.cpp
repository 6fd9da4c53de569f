#include "pipeline/packets/packet_queue.hpp"

#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "tests/pipeline/source/encoded_clip.hpp"

namespace framelane {
namespace {

using namespace std::chrono_literals;

class PacketQueueTest : public ::testing::Test {
 protected:
  PacketQueueTest() {
    packet_ = make_packet();
    if (av_new_packet(packet_.get(), 100) < 0) throw std::bad_alloc();
    format_ = std::make_shared<MediaFormat>();
  }
  const AVPacket& stamped(std::int64_t pts) {
    packet_->pts = pts;
    return *packet_;
  }
  PacketPtr packet_;
  MediaFormatRef format_;
};

TEST_F(PacketQueueTest, PacketsComeOutInOrderAndShareTheirData) {
  PacketQueue queue(3);
  MediaPacket out;
  for (std::int64_t pts = 0; pts < 10; ++pts) {  // more than once around the ring
    ASSERT_EQ(queue.try_push(stamped(pts), StreamKind::kAudio, format_),
              PacketQueue::Push::kQueued);
    ASSERT_EQ(queue.pop(out, 0ms, {}), PacketQueue::Pop::kPacket);
    EXPECT_EQ(out.packet->pts, pts);
    EXPECT_EQ(out.packet->data, packet_->data);
    EXPECT_EQ(out.stream, StreamKind::kAudio);
    EXPECT_EQ(out.format, format_);
  }
}

TEST_F(PacketQueueTest, TryPushIntoAFullQueueIsRefused) {
  PacketQueue queue(1);
  ASSERT_EQ(queue.try_push(*packet_, StreamKind::kVideo, format_), PacketQueue::Push::kQueued);
  EXPECT_EQ(queue.try_push(*packet_, StreamKind::kVideo, format_), PacketQueue::Push::kFull);
}

TEST_F(PacketQueueTest, AnotherCapacityKeepsWhatIsQueued) {
  PacketQueue queue(3);
  MediaPacket out;
  const auto push = [&](std::int64_t pts) {
    return queue.try_push(stamped(pts), StreamKind::kVideo, format_);
  };
  ASSERT_EQ(push(0), PacketQueue::Push::kQueued);
  ASSERT_EQ(queue.pop(out, 0ms, {}), PacketQueue::Pop::kPacket);
  for (std::int64_t pts = 1; pts <= 3; ++pts) ASSERT_EQ(push(pts), PacketQueue::Push::kQueued);
  queue.set_capacity(4);
  EXPECT_EQ(queue.room(), 1U);
  EXPECT_EQ(push(4), PacketQueue::Push::kQueued);
  queue.set_capacity(2);
  EXPECT_EQ(queue.room(), 0U);
  EXPECT_EQ(push(5), PacketQueue::Push::kFull);
  for (std::int64_t pts = 1; pts <= 4; ++pts) {
    ASSERT_EQ(queue.pop(out, 0ms, {}), PacketQueue::Pop::kPacket);
    EXPECT_EQ(out.packet->pts, pts);
  }
  EXPECT_EQ(push(6), PacketQueue::Push::kQueued);
  EXPECT_EQ(push(7), PacketQueue::Push::kQueued);
  EXPECT_EQ(push(8), PacketQueue::Push::kFull);
}

TEST_F(PacketQueueTest, TryPushOfMoreBytesThanAllowedIsRefused) {
  PacketQueue queue(100, 550);  // packets have 100
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(queue.try_push(*packet_, StreamKind::kVideo, format_), PacketQueue::Push::kQueued);
  }
  EXPECT_EQ(queue.try_push(*packet_, StreamKind::kVideo, format_), PacketQueue::Push::kFull);
  MediaPacket out;
  ASSERT_EQ(queue.pop(out, 0ms, {}), PacketQueue::Pop::kPacket);
  EXPECT_EQ(queue.try_push(*packet_, StreamKind::kVideo, format_), PacketQueue::Push::kQueued);
  EXPECT_EQ(queue.try_push(*packet_, StreamKind::kVideo, format_), PacketQueue::Push::kFull);
  EXPECT_EQ(queue.clear(), 5u);
  EXPECT_EQ(queue.try_push(*packet_, StreamKind::kVideo, format_), PacketQueue::Push::kQueued);
}

TEST_F(PacketQueueTest, AFewPacketsFitHoweverLarge) {
  PacketQueue queue(100, 50);
  for (std::size_t i = 0; i < PacketQueue::kAlwaysFit; ++i) {
    ASSERT_EQ(queue.try_push(*packet_, StreamKind::kVideo, format_), PacketQueue::Push::kQueued);
  }
  EXPECT_EQ(queue.try_push(*packet_, StreamKind::kVideo, format_), PacketQueue::Push::kFull);
}

TEST_F(PacketQueueTest, PushWaitsForRoomForItsBytes) {
  PacketQueue queue(100, 400);
  for (int i = 0; i < 4; ++i) queue.try_push(stamped(i), StreamKind::kVideo, format_);
  auto pushed = std::async(std::launch::async,
                           [&] { return queue.push(*packet_, StreamKind::kVideo, format_, {}); });
  EXPECT_EQ(pushed.wait_for(20ms), std::future_status::timeout);
  MediaPacket out;
  ASSERT_EQ(queue.pop(out, 10s, {}), PacketQueue::Pop::kPacket);
  EXPECT_EQ(pushed.get(), PacketQueue::Push::kQueued);
}

TEST_F(PacketQueueTest, PushWaitsForASlot) {
  PacketQueue queue(1);
  ASSERT_EQ(queue.try_push(stamped(1), StreamKind::kVideo, format_), PacketQueue::Push::kQueued);
  std::jthread producer([&](std::stop_token stop) {
    EXPECT_EQ(queue.push(stamped(2), StreamKind::kVideo, format_, stop),
              PacketQueue::Push::kQueued);
  });
  MediaPacket out;
  ASSERT_EQ(queue.pop(out, 10s, {}), PacketQueue::Pop::kPacket);
  ASSERT_EQ(queue.pop(out, 10s, {}), PacketQueue::Pop::kPacket);
  EXPECT_EQ(out.packet->pts, 2);
}

TEST_F(PacketQueueTest, AProducerDoesNotWaitForAConsumerInTrouble) {
  PacketQueue queue(1);
  ASSERT_EQ(queue.try_push(*packet_, StreamKind::kVideo, format_), PacketQueue::Push::kQueued);
  auto pushed = std::async(std::launch::async,
                           [&] { return queue.push(*packet_, StreamKind::kVideo, format_, {}); });
  queue.set_patient(false);
  EXPECT_EQ(pushed.get(), PacketQueue::Push::kFull);
}

TEST_F(PacketQueueTest, AStopReleasesAProducerThatWaits) {
  PacketQueue queue(1);
  ASSERT_EQ(queue.try_push(*packet_, StreamKind::kVideo, format_), PacketQueue::Push::kQueued);
  std::stop_source stop;
  auto pushed = std::async(std::launch::async, [&] {
    return queue.push(*packet_, StreamKind::kVideo, format_, stop.get_token());
  });
  stop.request_stop();
  EXPECT_EQ(pushed.get(), PacketQueue::Push::kClosed);
}

TEST_F(PacketQueueTest, ClosingReleasesAProducerThatWaits) {
  PacketQueue queue(1);
  ASSERT_EQ(queue.try_push(*packet_, StreamKind::kVideo, format_), PacketQueue::Push::kQueued);
  auto pushed = std::async(std::launch::async,
                           [&] { return queue.push(*packet_, StreamKind::kVideo, format_, {}); });
  queue.close();
  EXPECT_EQ(pushed.get(), PacketQueue::Push::kClosed);
}

TEST_F(PacketQueueTest, WhatIsQueuedCanBePoppedAfterClosing) {
  PacketQueue queue(2);
  ASSERT_EQ(queue.try_push(*packet_, StreamKind::kVideo, format_), PacketQueue::Push::kQueued);
  queue.close();
  MediaPacket out;
  EXPECT_EQ(queue.pop(out, 0ms, {}), PacketQueue::Pop::kPacket);
  EXPECT_EQ(queue.pop(out, 0ms, {}), PacketQueue::Pop::kEnd);
}

TEST_F(PacketQueueTest, PopOfAnEmptyQueueTimesOut) {
  PacketQueue queue(2);
  MediaPacket out;
  EXPECT_EQ(queue.pop(out, 1ms, {}), PacketQueue::Pop::kTimeout);
}

TEST_F(PacketQueueTest, AStopComesBeforePackets) {
  PacketQueue queue(2);
  ASSERT_EQ(queue.try_push(*packet_, StreamKind::kVideo, format_), PacketQueue::Push::kQueued);
  std::stop_source stop;
  stop.request_stop();
  MediaPacket out;
  EXPECT_EQ(queue.pop(out, 10s, stop.get_token()), PacketQueue::Pop::kStopped);
}

TEST_F(PacketQueueTest, ClearingLetsGoOfTheData) {
  PacketQueue queue(3);
  for (int i = 0; i < 3; ++i) queue.try_push(*packet_, StreamKind::kVideo, format_);
  EXPECT_EQ(queue.clear(), 3u);
  EXPECT_EQ(av_buffer_get_ref_count(packet_->buf), 1);
  EXPECT_EQ(format_.use_count(), 1);
}

}  // namespace
}  // namespace framelane
