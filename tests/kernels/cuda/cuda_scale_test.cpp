#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/cuda/cuda_converter.hpp"
#include "kernels/linear_transform.hpp"
#include "kernels/luma_histogram.hpp"
#include "kernels/reference.hpp"
#include "kernels/scaled_reference.hpp"
#include "tests/cuda_runtime/fixture.hpp"
#include "tests/kernels/cuda/device_image.hpp"
#include "tests/kernels/real_scaling.hpp"
#include "tests/kernels/test_image.hpp"

namespace framelane {
namespace {

class CudaScaleTest : public CudaStreamTest {
 protected:
  int up_to(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }

  /// Scales random pixels on the GPU and with the reference, and compares all of the target's
  /// memory.
  void expect_exact(const Conversion& conversion, DeviceLayout layout) {
    DeviceImage source(conversion.source, conversion.width, conversion.height, layout);
    source.fill_random(random_);
    expect_exact(conversion, layout, source);
  }
  void expect_exact(const Conversion& conversion, DeviceLayout layout, DeviceImage& source) {
    const auto [width, height] = conversion.target_size();
    DeviceImage actual(conversion.target, width, height, layout);
    DeviceImage expected(conversion.target, width, height, layout);
    actual.fill(0xA5);
    expected.fill(0xA5);
    convert_reference(conversion, as_const(source.on_host()), expected.on_host());
    source.upload(stream_);
    actual.upload(stream_);
    const auto converter = CudaConverter::make(conversion);
    ASSERT_EQ(converter->load(false), cudaSuccess);
    std::vector<std::uint8_t> constants(converter->constant_bytes());
    converter->write_constants(constants.data());
    void* memory = nullptr;
    ASSERT_EQ(cudaMalloc(&memory, constants.size()), cudaSuccess);
    ASSERT_EQ(cudaMemcpyAsync(memory, constants.data(), constants.size(), cudaMemcpyHostToDevice,
                              stream_),
              cudaSuccess);
    const CudaFrame frame{as_const(source.on_device()), actual.on_device(), nullptr,
                          static_cast<const std::uint8_t*>(memory)};
    const int middle = height / 4 * 2;
    ASSERT_EQ(converter->enqueue({&frame, 1}, middle, height, stream_), cudaSuccess);
    ASSERT_EQ(middle == 0 ? cudaSuccess : converter->enqueue({&frame, 1}, 0, middle, stream_),
              cudaSuccess);
    actual.download(stream_);
    ASSERT_EQ(cudaFree(memory), cudaSuccess);
    ASSERT_TRUE(actual.equals(expected))
        << describe(conversion) << " to " << width << "x" << height << ", filter "
        << static_cast<int>(conversion.scaling->filter) << ", "
        << (conversion.scaling->orientation.transposed ? "transposed, " : "")
        << (conversion.scaling->orientation.mirrored ? "mirrored, " : "")
        << (conversion.scaling->orientation.upside_down ? "upside down" : "");
  }

  std::mt19937 random_{4711};
};

TEST_F(CudaScaleTest, EqualsTheReferenceInEveryFormatFilterAndPlace) {
  constexpr DeviceLayout kRowLayouts[] = {
      {}, {.offset = 1, .padding = 5, .pitch_multiple = 1}, {.padding = 7, .bottom_up = true}};
  for (const PixelFormat source : kAllFormats) {
    for (int turn = 0; turn < 24;) {
      const auto from = all_colors(source);
      const PixelFormat target = kAllFormats[up_to(kPixelFormatCount)];
      const auto to = all_colors(target);
      Conversion conversion{
          1 + up_to(50), 1 + up_to(40),
          source,        from[static_cast<std::size_t>(up_to(static_cast<int>(from.size())))],
          target,        to[static_cast<std::size_t>(up_to(static_cast<int>(to.size())))]};
      const PictureSize size{1 + up_to(50), 1 + up_to(40)};
      Rect crop{0, 0, conversion.width, conversion.height};
      Rect place{0, 0, size.width, size.height};
      if (turn % 3 == 2) {
        crop = {crop.width / 4 * 2, 0, crop.width - crop.width / 4 * 2, crop.height / 4 * 2};
        place = {size.width / 8 * 2, size.height / 8 * 2, size.width / 4 * 2, size.height / 4 * 2};
      }
      conversion.scaling = Scaling{crop, size, place, kScaleFilters[up_to(4)], {10, 200, 30}};
      conversion.scaling->orientation = {up_to(2) == 0, up_to(2) == 0, up_to(2) == 0};
      if (why_unsupported(conversion)) continue;
      expect_exact(conversion, kRowLayouts[turn++ % 3]);
      if (HasFatalFailure()) return;
    }
  }
}

/// Pictures of several tiles across and down, with bars, with parts of odd sizes, and in slices.
TEST_F(CudaScaleTest, TilesMeetWithoutASeam) {
  struct Work {
    PixelFormat source, target;
    PictureSize from, to;
    Rect crop, place;  // empty: all of it
    DeviceLayout layout;
    const char* kernel = "scale-tile";  // for bicubic
  };
  constexpr DeviceLayout kOdd{.offset = 1, .padding = 3, .pitch_multiple = 1};
  constexpr DeviceLayout kWords{.offset = 4, .padding = 4, .pitch_multiple = 4};
  constexpr DeviceLayout kUpwards{.padding = 7, .bottom_up = true};
  constexpr const char* kMatrix = "scale-matrix";
  const Work works[] = {
      {PixelFormat::kBgra, PixelFormat::kNv12, {1303, 310}, {652, 156}, {}, {}, {}},
      {PixelFormat::kRgba, PixelFormat::kI420, {1303, 310}, {325, 78}, {}, {}, kWords},
      {PixelFormat::kArgb, PixelFormat::kNv12, {1100, 130}, {555, 85}, {}, {}, {}},
      {PixelFormat::kAbgr, PixelFormat::kI422, {1100, 120}, {275, 31}, {}, {}, kUpwards},
      {PixelFormat::kBgr24, PixelFormat::kNv12, {701, 93}, {401, 37}, {}, {}, kOdd},
      {PixelFormat::kBgra, PixelFormat::kI444, {900, 80}, {301, 27}, {}, {}, {}},
      {PixelFormat::kBgra, PixelFormat::kGray8, {1200, 90}, {500, 45}, {}, {}, kWords},
      {PixelFormat::kBgra,
       PixelFormat::kNv12,
       {1400, 90},
       {700, 200},
       {6, 2, 1290, 80},
       {20, 40, 640, 44},
       {}},
      {PixelFormat::kNv12, PixelFormat::kNv12, {1920, 300}, {1280, 200}, {}, {}, {}, kMatrix},
      {PixelFormat::kNv12, PixelFormat::kI420, {1301, 201}, {853, 133}, {}, {}, kOdd, kMatrix},
      {PixelFormat::kI420,
       PixelFormat::kNv12,
       {1300, 200},
       {700, 100},
       {4, 2, 1200, 150},
       {100, 20, 510, 62},
       kWords,
       kMatrix},
      {PixelFormat::kYuyv, PixelFormat::kI420, {1302, 100}, {650, 50}, {}, {}, {}},
      {PixelFormat::kI444, PixelFormat::kNv12, {1200, 100}, {600, 99}, {}, {}, kUpwards, kMatrix},
      {PixelFormat::kGray8,
       PixelFormat::kNv12,
       {1200, 100},
       {600, 80},
       {},
       {0, 10, 600, 60},
       {},
       kMatrix},
      {PixelFormat::kBgra, PixelFormat::kNv12, {2048, 256}, {32, 4}, {}, {}, {}},
      {PixelFormat::kNv12, PixelFormat::kNv12, {2048, 256}, {34, 6}, {}, {}, {}},
      {PixelFormat::kNv12, PixelFormat::kNv12, {400, 200}, {1200, 100}, {}, {}, {}, kMatrix},
      {PixelFormat::kNv12, PixelFormat::kNv12, {640, 80}, {700, 100}, {}, {}, {}, kMatrix},
      {PixelFormat::kNv12, PixelFormat::kNv12, {640, 48}, {700, 60}, {}, {}, {}},
      {PixelFormat::kYuyv, PixelFormat::kI420, {300, 50}, {400, 130}, {}, {}, {}, "scale"},
  };
  for (const Work& work : works) {
    const bool rgb = info(work.source).rgb;
    for (const ScaleFilter filter : kScaleFilters) {
      Conversion conversion{work.from.width, work.from.height,
                            work.source,     rgb ? kRgbFull : ColorSpec{},
                            work.target,     {}};
      const auto whole = [](PictureSize size) { return Rect{0, 0, size.width, size.height}; };
      conversion.scaling = Scaling{work.crop.width > 0 ? work.crop : whole(work.from),
                                   work.to,
                                   work.place.width > 0 ? work.place : whole(work.to),
                                   filter,
                                   {200, 10, 90}};
      ASSERT_FALSE(why_unsupported(conversion)) << *why_unsupported(conversion);
      if (filter == ScaleFilter::kBicubic) {
        EXPECT_STREQ(CudaConverter::make(conversion)->name(), work.kernel) << describe(conversion);
      }
      expect_exact(conversion, work.layout);
      if (HasFatalFailure()) return;
    }
  }
}

/// Planes of sizes that matrix units work on: tiles that are partly outside, rows and columns at
/// all edges, parts that begin anywhere, and every way in which planes may lie.
TEST_F(CudaScaleTest, MatricesMeetWithoutASeam) {
  constexpr DeviceLayout layouts[] = {{},
                                      {.offset = 1, .padding = 3, .pitch_multiple = 1},
                                      {.offset = 4, .padding = 4, .pitch_multiple = 4},
                                      {.padding = 7, .bottom_up = true}};
  constexpr PixelFormat kSources[] = {PixelFormat::kNv12, PixelFormat::kI420, PixelFormat::kI444,
                                      PixelFormat::kGray8, PixelFormat::kI422};
  int matrices = 0;
  for (int turn = 0; turn < 96; ++turn) {
    const PixelFormat target = kAllFormats[up_to(kPixelFormatCount)];
    Conversion conversion{64 + up_to(120), 64 + up_to(80), kSources[turn % 5], {}, target, {}};
    if (info(target).rgb) continue;
    if (turn % 4 == 1) conversion.source_color.range = Range::kFull;
    if (turn % 4 == 2) conversion.target_color.range = Range::kFull;
    conversion.source_color.siting = kSitings[up_to(3)];
    conversion.target_color.siting = kSitings[up_to(3)];
    const PictureSize size{conversion.width * (3 + up_to(12)) / 10 + up_to(9),
                           conversion.height * (3 + up_to(12)) / 10 + up_to(9)};
    Rect crop{0, 0, conversion.width, conversion.height};
    Rect place{0, 0, size.width, size.height};
    if (turn % 3 == 2) {
      crop = {2 + 2 * up_to(4), 2 * up_to(4), conversion.width / 2 * 2 - 12, 0};
      crop.height = conversion.height / 2 * 2 - crop.y - 2 * up_to(4);
      place = {2 * up_to(5), 2 * up_to(5), size.width / 2 * 2 - 10, size.height / 2 * 2 - 10};
    }
    conversion.scaling = Scaling{crop, size, place, kScaleFilters[up_to(4)], {10, 200, 30}};
    if (place.width <= 0 || place.height <= 0 || why_unsupported(conversion)) continue;
    if (std::string_view(CudaConverter::make(conversion)->name()) == "scale-matrix") ++matrices;
    expect_exact(conversion, layouts[up_to(4)]);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(matrices, 20);
}

/// Lines of one value each of which every fourth sum down is nearly a tie, so that no list has room
/// for a warp's doubts.
TEST_F(CudaScaleTest, MostOfAMatrixMayBeInDoubt) {
  Conversion conversion{320, 112, PixelFormat::kNv12, {}, PixelFormat::kNv12, {}};
  conversion.source_color.range = Range::kFull;
  conversion.scaling = Scaling{{0, 0, 320, 112}, {213, 64}, {0, 0, 213, 64}};
  ASSERT_STREQ(CudaConverter::make(conversion)->name(), "scale-matrix");
  const AxisTable down(
      AxisFilter({.source_pixels = 112, .target_pixels = 64, .source = {}, .target = {}}));
  int pictures = 0;
  for (int turn = 0; turn < 100000 && pictures < 2; ++turn) {
    std::array<int, 7> lines{};
    for (int& line : lines) line = up_to(256);
    double sum = 0;
    for (int j = 0; j < down.taps(); ++j) {
      const int line = (down.first()[32] + j) % 7;
      sum += down.weights(32)[j] * lines[static_cast<std::size_t>(line)];
    }
    const double above = 16 + sum * 219 / 255 + 0.5;
    if (sum < 1 || sum > 254 || std::abs(above - std::round(above)) > 3e-5) continue;
    ++pictures;
    DeviceImage source(conversion.source, 320, 112);
    source.fill_random(random_);
    const ImageView pixels = source.on_host();
    for (int y = 0; y < 112; ++y) {
      std::memset(pixels.planes[0].data + y * pixels.planes[0].pitch,
                  lines[static_cast<std::size_t>(y % 7)], 320);
    }
    expect_exact(conversion, {}, source);
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(pictures, 2);
}

/// Where a mean of few samples is a tie as often as not, and where numbers have more than 128 bits.
TEST_F(CudaScaleTest, TiesAndLongNumbersAreExact) {
  const ColorSpec from{Matrix::kBt2020, Range::kLimited};
  const ColorSpec to{Matrix::kBt709, Range::kFull};
  for (const ScaleFilter filter : kScaleFilters) {
    for (const auto& [width, height] : {std::pair{240, 48}, {320, 64}, {720, 150}}) {
      Conversion conversion{480, 96, PixelFormat::kYuyv, {}, PixelFormat::kI420, {}};
      conversion.scaling =
          Scaling{{0, 0, 480, 96}, {width, height}, {0, 0, width, height}, filter, {}};
      expect_exact(conversion, {});
      conversion.source = PixelFormat::kNv12;
      EXPECT_STREQ(CudaConverter::make(conversion)->name(), "scale-matrix");
      expect_exact(conversion, {});
      conversion.source_color = from;
      conversion.target_color = to;
      expect_exact(conversion, {});
      if (HasFatalFailure()) return;
    }
  }
}

/// A picture of one colour whose luma is nearly a tie, so that floats leave all of it in doubt.
TEST_F(CudaScaleTest, AWholePictureMayBeInDoubt) {
  Conversion conversion{1280, 240, PixelFormat::kBgra, kRgbFull, PixelFormat::kNv12, {}};
  conversion.scaling = Scaling{{0, 0, 1280, 240}, {319, 61}, {0, 0, 319, 61}};
  const LinearForm luma = color_transform(conversion)[0];
  const auto [red, green, blue] = luma.coefficients;
  int colors = 0;
  for (int i = 0; i < 1 << 24 && colors < 2; i += 211) {
    const std::array bytes{i & 255, i >> 8 & 255, i >> 16};
    const std::int64_t numerator =
        2 * (red * bytes[2] + green * bytes[1] + blue * bytes[0] + luma.offset) + luma.denominator;
    const std::int64_t rest = numerator % (2 * luma.denominator);
    const std::int64_t to_tie = std::min(rest, 2 * luma.denominator - rest);
    if (static_cast<double>(to_tie) > 1e-4 * static_cast<double>(luma.denominator)) continue;
    ++colors;
    DeviceImage source(conversion.source, conversion.width, conversion.height);
    const ImageView pixels = source.on_host();
    for (int y = 0; y < conversion.height; ++y) {
      std::uint8_t* const row = pixels.planes[0].data + y * pixels.planes[0].pitch;
      for (int x = 0; x < 4 * conversion.width; ++x) {
        row[x] = static_cast<std::uint8_t>(x % 4 < 3 ? bytes[static_cast<std::size_t>(x % 4)] : 0);
      }
    }
    expect_exact(conversion, {}, source);
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(colors, 2);
}

/// More frames than a launch takes, one of which is not aligned.
TEST_F(CudaScaleTest, FramesShareLaunches) {
  for (const PixelFormat format : {PixelFormat::kBgra, PixelFormat::kNv12}) {
    Conversion conversion{
        128, 96, format, info(format).rgb ? kRgbFull : ColorSpec{}, PixelFormat::kNv12, {}};
    conversion.scaling = Scaling{{0, 0, 128, 96}, {80, 60}, {0, 0, 80, 60}};
    const auto converter = CudaConverter::make(conversion);
    ASSERT_STREQ(converter->name(), format == PixelFormat::kNv12 ? "scale-matrix" : "scale-tile");
    std::vector<std::uint8_t> numbers(converter->constant_bytes());
    converter->write_constants(numbers.data());
    void* constants = nullptr;
    ASSERT_EQ(cudaMalloc(&constants, numbers.size()), cudaSuccess);
    ASSERT_EQ(
        cudaMemcpyAsync(constants, numbers.data(), numbers.size(), cudaMemcpyHostToDevice, stream_),
        cudaSuccess);
    std::vector<std::unique_ptr<DeviceImage>> sources, targets;
    std::vector<CudaFrame> frames;
    for (int i = 0; i < 11; ++i) {
      const DeviceLayout layout{.offset = i == 9 ? 1 : 0};
      sources.push_back(std::make_unique<DeviceImage>(format, 128, 96, layout));
      targets.push_back(std::make_unique<DeviceImage>(conversion.target, 80, 60, layout));
      sources.back()->fill_random(random_);
      sources.back()->upload(stream_);
      targets.back()->fill(0xA5);
      targets.back()->upload(stream_);
      frames.push_back({as_const(sources.back()->on_device()), targets.back()->on_device(), nullptr,
                        static_cast<const std::uint8_t*>(constants)});
    }
    ASSERT_EQ(converter->enqueue(frames, 0, 60, stream_), cudaSuccess);
    for (std::size_t i = 0; i < frames.size(); ++i) {
      DeviceImage expected(conversion.target, 80, 60, {.offset = i == 9 ? 1 : 0});
      expected.fill(0xA5);
      convert_reference(conversion, as_const(sources[i]->on_host()), expected.on_host());
      targets[i]->download(stream_);
      EXPECT_TRUE(targets[i]->equals(expected)) << info(format).name << ", frame " << i;
    }
    ASSERT_EQ(cudaFree(constants), cudaSuccess);
  }
}

}  // namespace
}  // namespace framelane
