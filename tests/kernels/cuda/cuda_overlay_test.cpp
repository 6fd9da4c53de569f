#include <gtest/gtest.h>

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
  std::mt19937 random_{160};
};

TEST_P(CudaOverlayTest, EveryByteIsTheReferences) {
  constexpr DeviceLayout kEachLayout[] = {
      {}, {.offset = 1, .padding = 5, .pitch_multiple = 1}, {.padding = 7, .bottom_up = true}};
  ASSERT_EQ(load_blend(), cudaSuccess);
  for (int turn = 0; turn < 12; ++turn) {
    const auto up_to = [&](int n) {
      return static_cast<int>(random_() % static_cast<unsigned>(n));
    };
    const PictureSize frame{1 + up_to(300), 1 + up_to(60)};
    RgbaPicture picture{1 + up_to(200), 1 + up_to(50), {}};
    picture.pixels.resize(std::size_t{4} * static_cast<std::size_t>(picture.width) *
                          static_cast<std::size_t>(picture.height));
    for (std::uint8_t& value : picture.pixels) value = static_cast<std::uint8_t>(random_());
    const ColorSpec color = info(GetParam()).rgb ? kRgbFull : ColorSpec{};
    const Overlay overlay(picture, up_to(frame.width + 20) - 20, up_to(frame.height + 10) - 10,
                          frame, GetParam(), color);
    DeviceImage actual(GetParam(), frame.width, frame.height, kEachLayout[turn % 3]);
    actual.fill_random(random_);
    DeviceImage expected(GetParam(), frame.width, frame.height, kEachLayout[turn % 3]);
    for (int plane = 0; plane < info(GetParam()).plane_count; ++plane) {
      for (int y = 0; y < plane_rows(GetParam(), plane, frame.height); ++y) {
        std::copy_n(actual.on_host().row(plane, y), plane_row_bytes(GetParam(), plane, frame.width),
                    expected.on_host().row(plane, y));
      }
    }
    void* bytes = nullptr;
    ASSERT_EQ(cudaMalloc(&bytes, overlay.bytes().size() + 1), cudaSuccess);
    ASSERT_EQ(cudaMemcpyAsync(bytes, overlay.bytes().data(), overlay.bytes().size(),
                              cudaMemcpyHostToDevice, stream_),
              cudaSuccess);
    actual.upload(stream_);
    const int middle = frame.height / 4 * 2;
    for (const auto& [begin, end] : {std::pair{middle, frame.height}, {0, middle}}) {
      ASSERT_EQ(enqueue_blend(overlay, static_cast<const std::uint8_t*>(bytes), actual.on_device(),
                              begin, end, stream_),
                cudaSuccess);
    }
    actual.download(stream_);
    ASSERT_EQ(cudaFree(bytes), cudaSuccess);
    blend_reference(overlay, expected.on_host(), 0, frame.height);
    for (int plane = 0; plane < info(GetParam()).plane_count; ++plane) {
      for (int y = 0; y < plane_rows(GetParam(), plane, frame.height); ++y) {
        const std::uint8_t* const row = actual.on_host().row(plane, y);
        ASSERT_TRUE(std::equal(row, row + plane_row_bytes(GetParam(), plane, frame.width),
                               expected.on_host().row(plane, y)))
            << frame.width << 'x' << frame.height << ", plane " << plane << " row " << y;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, CudaOverlayTest, ::testing::ValuesIn(kAllFormats), FormatName());

}  // namespace
}  // namespace framelane
