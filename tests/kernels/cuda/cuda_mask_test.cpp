#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "kernels/cuda/picture_mask.hpp"
#include "tests/cuda_runtime/fixture.hpp"
#include "tests/kernels/cuda/device_image.hpp"
#include "tests/kernels/test_image.hpp"

namespace framelane {
namespace {

class CudaMaskTest : public CudaStreamTest, public ::testing::WithParamInterface<PixelFormat> {
 protected:
  int up_to(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  MaskShape::Point point() { return {up_to(1001) / 1000.0, up_to(1001) / 1000.0}; }
  std::vector<MaskShape> some_shapes() {
    std::vector<MaskShape> shapes;
    const int count = 1 + up_to(3);
    while (static_cast<int>(shapes.size()) < count) {
      MaskShape shape{.polygon = {point(), point(), point()}};
      if (up_to(2) == 0) shape.polygon = {{0, 0}, {1, 0}, {1, 1}, {0, 1}};
      if (why_no_polygon(shape.polygon) != nullptr) continue;
      if (up_to(2) == 0) shape.style = MaskShape::Style::kPixelate;
      for (std::uint8_t& value : shape.color) value = static_cast<std::uint8_t>(random_());
      shapes.push_back(shape);
    }
    return shapes;
  }
  void expect_same_as_cpu(const PictureMask& mask, const PictureSize& size,
                          const DeviceLayout& layout) {
    const CudaMask on_gpu(mask);
    std::vector<std::uint8_t> numbers(on_gpu.constant_bytes());
    on_gpu.write_constants(numbers.data());
    void* constants = nullptr;
    ASSERT_EQ(cudaMalloc(&constants, numbers.size() + 1), cudaSuccess);
    ASSERT_EQ(
        cudaMemcpyAsync(constants, numbers.data(), numbers.size(), cudaMemcpyHostToDevice, stream_),
        cudaSuccess);
    DeviceImage actual(GetParam(), size.width, size.height, layout);
    DeviceImage expected(GetParam(), size.width, size.height, layout);
    const std::mt19937 same = random_;
    actual.fill_random(random_);
    random_ = same;
    expected.fill_random(random_);
    actual.upload(stream_);
    const int before = launches_so_far();
    ASSERT_EQ(
        on_gpu.enqueue(actual.on_device(), static_cast<const std::uint8_t*>(constants), stream_),
        cudaSuccess);
    launches_ = launches_so_far() - before;
    actual.download(stream_);
    ASSERT_EQ(cudaFree(constants), cudaSuccess);
    mask.apply(expected.on_host());
    EXPECT_TRUE(actual.equals(expected)) << size.width << 'x' << size.height;
  }
  /// 0 on a GPU.
  static int launches_so_far() {
    return stand_in::present() ? stand_in::calls("cudaLaunchKernel") : 0;
  }
  /// Of the last mask.
  void expect_launches(int count) const {
    if (!stand_in::present()) return;
    EXPECT_EQ(launches_, count);
  }
  ColorSpec color() const { return info(GetParam()).rgb ? kRgbFull : ColorSpec{}; }

  std::mt19937 random_{161};
  int launches_ = 0;  // of the last mask, if the stand-in counts them
};

TEST_P(CudaMaskTest, EveryByteIsThatOfTheProcessor) {
  constexpr DeviceLayout kEachLayout[] = {
      {}, {.offset = 1, .padding = 5, .pitch_multiple = 1}, {.padding = 7, .bottom_up = true}};
  ASSERT_EQ(CudaMask::load(), cudaSuccess);
  for (int turn = 0; turn < 12; ++turn) {
    const PictureSize size{1 + up_to(300), 1 + up_to(120)};
    const PictureMask mask(some_shapes(), GetParam(), size, color());
    expect_same_as_cpu(mask, size, kEachLayout[turn % 3]);
  }
}

MaskShape box(double left, double top, double right, double bottom, MaskShape::Style style) {
  return {.polygon = {{left, top}, {right, top}, {right, bottom}, {left, bottom}}, .style = style};
}

TEST_P(CudaMaskTest, ShapesThatLieApartAreOneLaunch) {
  using enum MaskShape::Style;
  const PictureSize size{320, 200};
  // The blocks of the third end above the fourth.
  const MaskShape shapes[] = {box(0, 0, 0.3, 0.3, kFill), box(0.3, 0, 0.6, 0.3, kPixelate),
                              box(0.1, 0.4, 0.5, 0.6, kPixelate), box(0.1, 0.68, 0.5, 1, kFill)};
  expect_same_as_cpu(PictureMask(shapes, GetParam(), size, color()), size, {});
  expect_launches(1);
}

TEST_P(CudaMaskTest, AShapeThatMeetsOthersComesAfterThem) {
  using enum MaskShape::Style;
  const PictureSize size{320, 200};
  // The second begins in the first, and the fourth in blocks of the third.
  const MaskShape shapes[] = {box(0, 0, 0.5, 0.5, kFill), box(0.4, 0.2, 0.7, 0.5, kPixelate),
                              box(0.1, 0.6, 0.9, 0.799, kPixelate), box(0, 0.8, 1, 1, kFill)};
  expect_same_as_cpu(PictureMask(shapes, GetParam(), size, color()), size, {});
  expect_launches(3);
}

TEST_P(CudaMaskTest, AMaskOfAllOfALargePictureIsOneLaunch) {
  const PictureSize size{2100, 130};
  const MaskShape all = box(0, 0, 1, 1, MaskShape::Style::kPixelate);
  expect_same_as_cpu(PictureMask({&all, 1}, GetParam(), size, color()), size, {});
  expect_launches(1);
}

INSTANTIATE_TEST_SUITE_P(Formats, CudaMaskTest, ::testing::ValuesIn(kAllFormats), FormatName());

using CudaLargeMaskTest = CudaMaskTest;

// A comb of 490 teeth has tens of thousands of pieces of rows.
TEST_P(CudaLargeMaskTest, AMaskMayHaveAnyNumberOfPieces) {
  MaskShape comb;
  constexpr int kTeeth = 490;
  comb.polygon = {{1, 1}, {0, 1}};
  for (int i = 0; i < kTeeth; ++i) {
    comb.polygon.push_back({(i + 0.25) / kTeeth, 0});
    comb.polygon.push_back({(i + 0.75) / kTeeth, 0.99});
  }
  ASSERT_EQ(why_no_polygon(comb.polygon), nullptr);
  const PictureSize size{4 * kTeeth, 150};
  for (const auto style : {MaskShape::Style::kFill, MaskShape::Style::kPixelate}) {
    comb.style = style;
    expect_same_as_cpu(PictureMask({&comb, 1}, GetParam(), size, color()), size, {});
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, CudaLargeMaskTest, ::testing::Values(PixelFormat::kNv12),
                         FormatName());

}  // namespace
}  // namespace framelane
