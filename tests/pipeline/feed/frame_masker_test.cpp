#include "pipeline/feed/frame_masker.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "pipeline/base/failure.hpp"

namespace framelane {
namespace {

constexpr int kWidth = 16;
constexpr int kHeight = 8;

/// Keeps what it is to cover.
class CoveringStage final : public Stage {
 public:
  bool cover(const std::shared_ptr<const PictureMask>& mask, const ImageView& frame) override {
    masks.push_back(mask);
    last = frame.planes[0].data;
    return works;
  }
  PlanRef prepare(std::span<const Conversion>, FrameMemory, bool,
                  std::span<const FrameMemory>) override {
    return {};
  }
  void submit(FrameJob&) override {}
  Wait wait(FrameJob&, std::stop_token, Deadline) override { return Wait::kReady; }

  std::vector<std::shared_ptr<const PictureMask>> masks;
  const std::uint8_t* last = nullptr;
  bool works = true;
};

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
  std::uint64_t copies() const { return stats_.host_copies[index_of(HostCopy::kMask)]; }

  FramePool pool_;
  FeedStats stats_{"gate", {}, {}, 1};
  std::vector<MaskShape> shapes_{{.polygon = {{0, 0}, {0.5, 0}, {0.5, 1}, {0, 1}}}};
  CoveringStage stage_;
  FrameMasker masker_{shapes_, stage_, stats_};
};

TEST_F(FrameMaskerTest, AFrameOfItsOwnIsCoveredInPlace) {
  InputFrame frame = this->frame();
  const std::uint8_t* const data = frame.image.planes[0].data;
  ASSERT_TRUE(masker_.apply(frame));
  EXPECT_EQ(frame.image.planes[0].data, data);
  EXPECT_TRUE(left_half_is_black(frame));
  EXPECT_EQ(copies(), 0u);
}

TEST_F(FrameMaskerTest, AFrameThatTheDecoderStillNeedsStaysAsItIs) {
  InputFrame frame = this->frame();
  const BufferRef reference = frame.buffer;
  const ConstImageView original = frame.image;
  ASSERT_TRUE(masker_.apply(frame));
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
  ASSERT_TRUE(masker_.apply(frame));
  EXPECT_NE(frame.image.planes[0].data, data);
  EXPECT_EQ(frame.loan, nullptr);
  EXPECT_TRUE(left_half_is_black(frame));
  EXPECT_EQ(copies(), 1u);
  InputFrame spoiled = this->frame();
  loan.spoiled = true;
  spoiled.loan = &loan;
  EXPECT_THROW(std::ignore = masker_.apply(spoiled), FeedError);
}

TEST_F(FrameMaskerTest, EachSizeHasItsOwnMask) {
  for (const int width : {kWidth, 2 * kWidth, kWidth}) {
    InputFrame frame = this->frame(width);
    ASSERT_TRUE(masker_.apply(frame));
    EXPECT_TRUE(left_half_is_black(frame)) << width;
  }
}

TEST_F(FrameMaskerTest, FramesOnAGpuAreCoveredThereWithOneMask) {
  for (int i = 0; i < 2; ++i) {
    InputFrame on_gpu = frame();
    on_gpu.memory = FrameMemory::kDevice;
    EXPECT_TRUE(masker_.apply(on_gpu));
    EXPECT_EQ(stage_.last, on_gpu.image.planes[0].data);
    EXPECT_EQ(on_gpu.image.row(0, 0)[0], 77);  // not by the processor
  }
  ASSERT_EQ(stage_.masks.size(), 2u);
  EXPECT_EQ(stage_.masks[0], stage_.masks[1]);
  stage_.works = false;
  InputFrame lost = frame();
  lost.memory = FrameMemory::kDevice;
  EXPECT_FALSE(masker_.apply(lost));
  EXPECT_EQ(copies(), 0u);
}

TEST_F(FrameMaskerTest, WhatCannotBeCoveredIsRefused) {
  // A strip that lies between two columns.
  const std::vector<MaskShape> strip{{.polygon = {{0.51, 0}, {0.52, 0}, {0.52, 1}, {0.51, 1}}}};
  FrameMasker masker(strip, stage_, stats_);
  for (int turn = 0; turn < 2; ++turn) {  // not only the first frame
    InputFrame frame = this->frame();
    EXPECT_THROW(std::ignore = masker.apply(frame), FeedError);
  }
  InputFrame wide = frame(64 * kWidth);
  ASSERT_TRUE(masker.apply(wide));
  EXPECT_EQ(wide.image.row(0, 0)[32 * kWidth + 12], 16);
}

}  // namespace
}  // namespace framelane
