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
    void* scratch = nullptr;
    ASSERT_EQ(cudaMalloc(&constants, numbers.size() + 1), cudaSuccess);
    ASSERT_EQ(cudaMalloc(&scratch, on_gpu.scratch_bytes() + 1), cudaSuccess);
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
    ASSERT_EQ(on_gpu.enqueue(actual.on_device(), static_cast<const std::uint8_t*>(constants),
                             static_cast<std::uint8_t*>(scratch), stream_),
              cudaSuccess);
    actual.download(stream_);
    ASSERT_EQ(cudaFree(constants), cudaSuccess);
    ASSERT_EQ(cudaFree(scratch), cudaSuccess);
    mask.apply(expected.on_host());
    EXPECT_TRUE(actual.equals(expected)) << size.width << 'x' << size.height;
  }
  ColorSpec color() const { return info(GetParam()).rgb ? kRgbFull : ColorSpec{}; }

  std::mt19937 random_{161};
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

INSTANTIATE_TEST_SUITE_P(Formats, CudaMaskTest, ::testing::ValuesIn(kAllFormats), FormatName());

using CudaLargeMaskTest = CudaMaskTest;

// A comb of 490 teeth has more pieces of rows than one launch takes.
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
