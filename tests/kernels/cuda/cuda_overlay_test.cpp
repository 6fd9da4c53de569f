#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <vector>

#include "kernels/cuda/overlay.hpp"
#include "tests/cuda_runtime/fixture.hpp"
#include "tests/kernels/cuda/device_image.hpp"
#include "tests/kernels/test_image.hpp"

namespace framelane {
namespace {

class CudaOverlayTest : public CudaStreamTest, public ::testing::WithParamInterface<PixelFormat> {
 protected:
  /// A frame, and what is expected of it.
  struct Frame {
    Frame(const PictureSize& size_, const DeviceLayout& layout)
        : size(size_),
          actual(GetParam(), size.width, size.height, layout),
          expected(GetParam(), size.width, size.height, layout) {}
    PictureSize size;
    DeviceImage actual;
    DeviceImage expected;
  };
  struct Drawn {
    std::size_t frame;
    std::unique_ptr<const Overlay> overlay;
    void* bytes = nullptr;
  };

  void SetUp() override {
    CudaStreamTest::SetUp();
    if (HasFatalFailure()) return;
    ASSERT_EQ(load_blend(), cudaSuccess);
  }
  void TearDown() override {
    for (const Drawn& drawn : drawn_) EXPECT_EQ(cudaFree(drawn.bytes), cudaSuccess);
    frames_.clear();
    CudaStreamTest::TearDown();
  }
  int up_to(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }

  void add_frame(const PictureSize& size, const DeviceLayout& layout = {}) {
    Frame& frame = *frames_.emplace_back(std::make_unique<Frame>(size, layout));
    const std::mt19937 same = random_;
    frame.actual.fill_random(random_);
    random_ = same;
    frame.expected.fill_random(random_);
    frame.actual.upload(stream_);
  }
  /// A picture with random pixels over a frame.
  void add_overlay(std::size_t frame, int x, int y, const PictureSize& size) {
    RgbaPicture picture{size.width, size.height, {}};
    picture.pixels.resize(std::size_t{4} * static_cast<std::size_t>(size.width) *
                          static_cast<std::size_t>(size.height));
    for (std::uint8_t& value : picture.pixels) value = static_cast<std::uint8_t>(random_());
    const ColorSpec color = info(GetParam()).rgb ? kRgbFull : ColorSpec{};
    Drawn drawn{frame, std::make_unique<const Overlay>(picture, x, y, frames_[frame]->size,
                                                       GetParam(), color)};
    const std::vector<std::uint8_t>& bytes = drawn.overlay->bytes();
    ASSERT_EQ(cudaMalloc(&drawn.bytes, bytes.size() + 1), cudaSuccess);
    ASSERT_EQ(
        cudaMemcpyAsync(drawn.bytes, bytes.data(), bytes.size(), cudaMemcpyHostToDevice, stream_),
        cudaSuccess);
    drawn_.push_back(std::move(drawn));
  }
  /// Draws all overlays over all rows, or over those below the frames' middle and then the others.
  void draw(bool in_parts = false) {
    for (const bool lower : {true, false}) {
      if (!lower && !in_parts) break;
      std::vector<CudaDrawing> drawings;
      for (const Drawn& drawn : drawn_) {
        const Frame& frame = *frames_[drawn.frame];
        const int middle = in_parts ? frame.size.height / 4 * 2 : 0;
        drawings.push_back({drawn.overlay.get(), static_cast<const std::uint8_t*>(drawn.bytes),
                            frame.actual.on_device(), lower ? middle : 0,
                            lower ? frame.size.height : middle});
      }
      ASSERT_EQ(enqueue_blends(drawings, stream_), cudaSuccess);
    }
  }
  void expect_exact() {
    for (const Drawn& drawn : drawn_) {
      Frame& frame = *frames_[drawn.frame];
      blend_reference(*drawn.overlay, frame.expected.on_host(), 0, frame.size.height);
    }
    for (const auto& frame : frames_) {
      frame->actual.download(stream_);
      EXPECT_TRUE(frame->actual.equals(frame->expected))
          << frame->size.width << 'x' << frame->size.height;
    }
  }
  static int launches() { return stand_in::calls("cudaLaunchKernel"); }

  std::mt19937 random_{160};
  std::vector<std::unique_ptr<Frame>> frames_;
  std::vector<Drawn> drawn_;
};

TEST_P(CudaOverlayTest, EveryByteIsTheReferences) {
  constexpr DeviceLayout kEachLayout[] = {
      {}, {.offset = 1, .padding = 5, .pitch_multiple = 1}, {.padding = 7, .bottom_up = true}};
  for (std::size_t i = 0; i < 12; ++i) {
    const PictureSize size{1 + up_to(300), 1 + up_to(60)};
    add_frame(size, kEachLayout[i % 3]);
    add_overlay(i, up_to(size.width + 20) - 20, up_to(size.height + 10) - 10,
                {1 + up_to(200), 1 + up_to(50)});
  }
  draw(/*in_parts=*/true);
  expect_exact();
}

TEST_P(CudaOverlayTest, WhatLiesOneOverTheOtherIsDrawnInOrder) {
  add_frame({150, 70});
  add_frame({150, 70});
  for (std::size_t i = 0; i < 24; ++i) {
    add_overlay(i % 2, up_to(150), up_to(70), {1 + up_to(100), 1 + up_to(50)});
  }
  draw();
  expect_exact();
}

TEST_P(CudaOverlayTest, OneThatLiesOverAnotherComesInTheNextLaunch) {
  if (!stand_in::present()) GTEST_SKIP() << "counts the stand-in's calls";
  for (std::size_t i = 0; i < 2; ++i) add_frame({100, 70});
  for (std::size_t i = 0; i < 2; ++i) add_overlay(i, 0, 0, {50, 36});
  for (std::size_t i = 0; i < 2; ++i) add_overlay(i, 48, 34, {10, 10});
  draw();
  EXPECT_EQ(launches(), 2);
}

TEST_P(CudaOverlayTest, OverlaysOfManyFramesShareLaunches) {
  for (std::size_t i = 0; i < 5; ++i) {
    add_frame({100, 70});
    add_overlay(i, 0, 0, {50, 36});
    add_overlay(i, 50, 0, {40, 70});  // they touch
  }
  draw();
  if (stand_in::present()) {
    EXPECT_EQ(launches(), 1);
  }
  expect_exact();
}

TEST_P(CudaOverlayTest, AnyNumberOfOverlaysIsDrawn) {
  add_frame({100, 82});
  for (int i = 0; i < 40; ++i) add_overlay(0, 10, 2 * i, {70, 2});
  draw();
  const int planes = 40 * info(GetParam()).plane_count;
  if (stand_in::present()) {
    EXPECT_GE(launches(), (planes + 31) / 32);
    EXPECT_LE(launches(), planes / 30 + 1);
  }
  expect_exact();
}

TEST_P(CudaOverlayTest, WithoutRowsNothingIsLaunched) {
  if (!stand_in::present()) GTEST_SKIP() << "counts the stand-in's calls";
  add_frame({20, 20});
  add_overlay(0, 30, 0, {10, 10});
  add_overlay(0, 0, 0, {0, 0});
  draw();
  EXPECT_EQ(launches(), 0);
}

INSTANTIATE_TEST_SUITE_P(Formats, CudaOverlayTest, ::testing::ValuesIn(kAllFormats), FormatName());

}  // namespace
}  // namespace framelane
