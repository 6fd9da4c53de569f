#include "pipeline/packets/snapshot_tap.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>

#include "tests/pipeline/base/wait.hpp"

namespace framelane {
namespace {

using namespace std::chrono_literals;

class SnapshotTapTest : public ::testing::Test {
 protected:
  void keep(std::int64_t time_us, bool copied = false) {
    const PacketPtr packet = make_packet();
    ASSERT_EQ(av_new_packet(packet.get(), 8), 0);
    packet->pts = time_us;
    tap_.keep(*packet, std::make_shared<const MediaFormat>(), copied, time_us);
  }
  /// The time of the keyframe; -1 if there is none.
  std::int64_t shown(bool masked = false) const {
    const SnapshotTap::Keyframe keyframe = tap_.keyframe(masked);
    return keyframe.packet ? keyframe.packet->pts : -1;
  }
  /// True if whoever waits gets a frame of this time, for which it has `patience`.
  bool gives(std::int64_t time_us, std::chrono::milliseconds patience) {
    bool came = false;
    std::atomic<bool> over = false;
    std::thread waits([&] {
      came = tap_.wait_frame(patience) != nullptr;
      over = true;
    });
    testing::comes_true([&] { return over || tap_.wanted(); });
    const FramePtr frame = make_frame();
    frame->format = AV_PIX_FMT_GRAY8;
    frame->width = frame->height = 16;
    EXPECT_EQ(av_frame_get_buffer(frame.get(), 0), 0);
    tap_.give(*frame, time_us);
    waits.join();
    return came;
  }

  SnapshotTap tap_;
};

TEST_F(SnapshotTapTest, ShowsTheNewestKeyframeOrWithMasksTheNewestOfAnEncode) {
  EXPECT_EQ(shown(), -1);
  keep(1, true);
  EXPECT_EQ(shown(), 1);
  EXPECT_EQ(shown(true), -1);
  keep(2);
  keep(3, true);
  EXPECT_EQ(shown(), 3);
  EXPECT_EQ(shown(true), 2);
}

TEST_F(SnapshotTapTest, NothingOfBeforeTheMasksIsShown) {
  keep(1);
  EXPECT_TRUE(gives(1, 1h));
  const std::uint64_t masks = tap_.expect_masks();
  EXPECT_EQ(shown(true), -1);
  keep(2);  // still without them
  EXPECT_EQ(shown(true), -1);
  EXPECT_FALSE(gives(2, 100ms));
  tap_.masks_begin(masks, 4);
  keep(3);  // was in the encoder
  EXPECT_EQ(shown(true), -1);
  EXPECT_FALSE(gives(3, 100ms));
  keep(4);
  EXPECT_EQ(shown(true), 4);
  EXPECT_TRUE(gives(4, 1h));
}

TEST_F(SnapshotTapTest, OnlyTheLastMasksOfSeveralAreShown) {
  const std::uint64_t first = tap_.expect_masks();
  const std::uint64_t second = tap_.expect_masks();
  tap_.masks_begin(first, 1);
  keep(1);
  EXPECT_EQ(shown(true), -1);
  tap_.masks_begin(second, 2);
  keep(2);
  EXPECT_EQ(shown(true), 2);
}

TEST_F(SnapshotTapTest, NothingOfTheSourceBeforeIsShown) {
  keep(1);
  keep(2, true);
  tap_.source_begins(10);
  EXPECT_EQ(shown(), -1);
  keep(3);
  EXPECT_EQ(shown(), -1);
  keep(10, true);
  EXPECT_EQ(shown(), 10);
}

TEST_F(SnapshotTapTest, NothingIsShownAfterTheEndOfTheRun) {
  keep(1);
  tap_.close();
  EXPECT_EQ(shown(), -1);
  keep(2);
  EXPECT_EQ(shown(), -1);
}

}  // namespace
}  // namespace framelane
