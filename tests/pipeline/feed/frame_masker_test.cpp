#include "pipeline/feed/frame_masker.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "pipeline/base/failure.hpp"

namespace framelane {
namespace {

constexpr int kWidth = 16;
constexpr int kHeight = 8;

class FrameMaskerTest : public ::testing::Test {
 protected:
  /// A gray frame whose samples are 77.
  InputFrame frame(int width = kWidth) {
    PooledImage image = allocate_image(pool_, PixelFormat::kGray8, width, kHeight);
    for (int y = 0; y < kHeight; ++y) std::fill_n(image.image.row(0, y), width, std::uint8_t{77});
    InputFrame frame;
    frame.image = as_const(image.image);
    frame.buffer = std::move(image.buffer);
    return frame;
  }
  static bool left_half_is_black(const InputFrame& frame) {
    for (int y = 0; y < frame.image.height; ++y) {
      for (int x = 0; x < frame.image.width; ++x) {
        const int expected = 2 * x < frame.image.width ? 16 : 77;
        if (frame.image.row(0, y)[x] != expected) return false;
      }
    }
    return true;
  }
  void apply(InputFrame& frame) {
    masker_.prepare(frame);
    ASSERT_TRUE(masker_.apply(frame, StageMasking::kNone));
  }
  std::uint64_t copies() const { return stats_.host_copies[index_of(HostCopy::kMask)]; }

  FramePool pool_;
  FeedStats stats_{"gate", {}, {}, 1};
  std::vector<MaskShape> shapes_{{.polygon = {{0, 0}, {0.5, 0}, {0.5, 1}, {0, 1}}}};
  FrameMasker masker_{shapes_, stats_};
};

TEST_F(FrameMaskerTest, AFrameOfItsOwnIsCoveredInPlace) {
  InputFrame frame = this->frame();
  const std::uint8_t* const data = frame.image.planes[0].data;
  apply(frame);
  EXPECT_EQ(frame.image.planes[0].data, data);
  EXPECT_TRUE(left_half_is_black(frame));
  EXPECT_EQ(copies(), 0u);
}

TEST_F(FrameMaskerTest, AFrameThatTheDecoderStillNeedsStaysAsItIs) {
  InputFrame frame = this->frame();
  const BufferRef reference = frame.buffer;
  const ConstImageView original = frame.image;
  apply(frame);
  EXPECT_TRUE(left_half_is_black(frame));
  for (int y = 0; y < kHeight; ++y) {
    EXPECT_EQ(std::count(original.row(0, y), original.row(0, y) + kWidth, 77), kWidth);
  }
  EXPECT_EQ(copies(), 1u);
}

class Loan final : public FrameLoan {
 public:
  std::string why_spoiled() const override { return spoiled ? "the producer has written" : ""; }
  bool spoiled = false;
};

TEST_F(FrameMaskerTest, AFrameOfAnotherProcessIsCopiedAndGivenBack) {
  Loan loan;
  InputFrame frame = this->frame();
  const std::uint8_t* const data = frame.image.planes[0].data;
  frame.loan = &loan;
  apply(frame);
  EXPECT_NE(frame.image.planes[0].data, data);
  EXPECT_EQ(frame.loan, nullptr);
  EXPECT_TRUE(left_half_is_black(frame));
  EXPECT_EQ(copies(), 1u);
  InputFrame spoiled = this->frame();
  loan.spoiled = true;
  spoiled.loan = &loan;
  masker_.prepare(spoiled);
  EXPECT_THROW(std::ignore = masker_.apply(spoiled, StageMasking::kNone), FeedError);
}

TEST_F(FrameMaskerTest, EachSizeHasItsOwnMask) {
  for (const int width : {kWidth, 2 * kWidth, kWidth}) {
    InputFrame frame = this->frame(width);
    apply(frame);
    EXPECT_TRUE(left_half_is_black(frame)) << width;
  }
}

TEST_F(FrameMaskerTest, AStageThatConvertsForEveryEncodeCoversWhatOthersHaveToo) {
  Loan loan;
  InputFrame lent = frame();
  lent.loan = &loan;
  InputFrame on_gpu = frame();
  on_gpu.memory = FrameMemory::kDevice;
  InputFrame shared = frame();
  const BufferRef reference = shared.buffer;
  for (InputFrame* frame : {&lent, &on_gpu, &shared}) {
    masker_.prepare(*frame);
    const std::shared_ptr<const PictureMask> mask = masker_.mask();
    const std::uint8_t* const data = frame->image.planes[0].data;
    EXPECT_FALSE(masker_.apply(*frame, StageMasking::kCopy));
    EXPECT_EQ(frame->image.planes[0].data, data);
    EXPECT_EQ(data[0], 77);
    masker_.prepare(*frame);
    EXPECT_EQ(masker_.mask(), mask);
  }
  InputFrame own = frame();
  masker_.prepare(own);
  EXPECT_TRUE(masker_.apply(own, StageMasking::kCopy));
  EXPECT_TRUE(left_half_is_black(own));
  EXPECT_EQ(copies(), 0u);
  // Nothing may see what is not covered, whatever has gone wrong before.
  EXPECT_THROW(std::ignore = masker_.apply(on_gpu, StageMasking::kNone), FeedError);
}

TEST_F(FrameMaskerTest, AGpuCoversEveryFrame) {
  InputFrame own = frame();
  masker_.prepare(own);
  EXPECT_FALSE(masker_.apply(own, StageMasking::kOnGpu));
  EXPECT_EQ(own.image.row(0, 0)[0], 77);
  EXPECT_EQ(copies(), 0u);
}

TEST_F(FrameMaskerTest, WhatCannotBeCoveredIsRefused) {
  // A strip that lies between two columns.
  const std::vector<MaskShape> strip{{.polygon = {{0.51, 0}, {0.52, 0}, {0.52, 1}, {0.51, 1}}}};
  FrameMasker masker(strip, stats_);
  for (int turn = 0; turn < 2; ++turn) {  // not only the first frame
    InputFrame frame = this->frame();
    EXPECT_THROW(masker.prepare(frame), FeedError);
  }
  InputFrame wide = frame(64 * kWidth);
  masker.prepare(wide);
  ASSERT_TRUE(masker.apply(wide, StageMasking::kNone));
  EXPECT_EQ(wide.image.row(0, 0)[32 * kWidth + 12], 16);
}

}  // namespace
}  // namespace framelane
