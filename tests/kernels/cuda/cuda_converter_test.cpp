// Longer than 400 lines: all tests of CudaConverter share one fixture and one list of layouts.
#include "kernels/cuda/cuda_converter.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/luma_count.hpp"
#include "kernels/luma_histogram.hpp"
#include "kernels/reference.hpp"
#include "tests/cuda_runtime/fixture.hpp"
#include "tests/kernels/cuda/device_image.hpp"
#include "tests/kernels/test_image.hpp"

namespace framelane {
namespace {

constexpr std::uint8_t kPattern = 0xA5;
constexpr DeviceLayout kAligned;
constexpr DeviceLayout kOddPitch{.offset = 0, .padding = 5, .pitch_multiple = 1};
constexpr DeviceLayout kWordAligned{.offset = 4, .padding = 1, .pitch_multiple = 4};
constexpr DeviceLayout kOddAddress{.offset = 1, .padding = 0, .pitch_multiple = 1};
constexpr DeviceLayout kBottomUp{
    .offset = 0, .padding = 7, .pitch_multiple = 16, .bottom_up = true};
constexpr DeviceLayout kLayouts[] = {kAligned,     kOddPitch,   kAligned,
                                     kWordAligned, kOddAddress, kBottomUp};

// Widths around groups of 4 pixels, chroma pairs, warps of 128 pixels and blocks of 512; heights
// around 2 and 4.
constexpr std::pair<int, int> kSizes[] = {
    {1, 1},  {2, 1},  {1, 2},  {2, 2},  {3, 5},   {4, 4},   {5, 3},   {6, 7},   {7, 2},   {8, 6},
    {15, 9}, {16, 8}, {17, 5}, {31, 4}, {127, 3}, {128, 2}, {129, 5}, {131, 2}, {256, 3}, {515, 4}};

bool is_convertible(const Conversion& conversion) {
  return !why_unsupported(conversion) && !is_identity(conversion);
}

// Visits every supported pair of formats with every siting, at this size. Each is visited with the
// next choice of matrices and ranges.
template <typename Visit>
void visit_pairs(PixelFormat source, int width, int height, std::size_t& turn, Visit visit) {
  for (const PixelFormat target : kAllFormats) {
    for (const Siting siting : kSitings) {
      std::vector<Conversion> choices;
      for (const ColorSpec& from : all_colors(source)) {
        for (const ColorSpec& to : all_colors(target)) {
          const Conversion conversion{width, height, source, from, target, to};
          if (to.siting == siting && is_convertible(conversion)) choices.push_back(conversion);
        }
      }
      // The step has no common factor with the number of choices, so in the end all are visited.
      if (!choices.empty()) visit(choices[turn++ * 7 % choices.size()]);
    }
  }
}

/// A frame's luma counts in device memory.
class DeviceCounts {
 public:
  explicit DeviceCounts(cudaStream_t stream) : stream_(stream) {
    EXPECT_EQ(cudaMalloc(&memory_, sizeof(LumaHistogram)), cudaSuccess);
    EXPECT_EQ(cudaMemsetAsync(memory_, 0, sizeof(LumaHistogram), stream), cudaSuccess);
  }
  ~DeviceCounts() { EXPECT_EQ(cudaFree(memory_), cudaSuccess); }

  std::uint32_t* get() const { return static_cast<std::uint32_t*>(memory_); }
  LumaHistogram download() const {
    LumaHistogram counts;
    EXPECT_EQ(cudaMemcpyAsync(&counts, memory_, sizeof counts, cudaMemcpyDeviceToHost, stream_),
              cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    return counts;
  }

 private:
  cudaStream_t stream_;
  void* memory_ = nullptr;
};

class CudaConverterTest : public CudaStreamTest {
 protected:
  // Converts random pixels on the GPU and with the reference, and compares all of the target's
  // memory; with `counts_luma`, the luma counts too.
  void expect_equal(const Conversion& conversion, DeviceLayout layout, bool counts_luma = false) {
    const auto [width, height, format, from, target_format, to, scaling, overlaid] = conversion;
    DeviceImage source(format, width, height, layout);
    DeviceImage actual(target_format, width, height, layout);
    DeviceImage expected(target_format, width, height, layout);
    source.fill_random(random_);
    actual.fill(kPattern);
    expected.fill(kPattern);
    convert_reference(conversion, as_const(source.on_host()), expected.on_host());
    source.upload(stream_);
    actual.upload(stream_);
    const DeviceCounts counts(stream_);
    const CudaFrame frame{as_const(source.on_device()), actual.on_device(),
                          counts_luma ? counts.get() : nullptr};
    const auto converter = CudaConverter::make(conversion);
    ASSERT_EQ(converter->enqueue({&frame, 1}, 0, height, stream_), cudaSuccess);
    actual.download(stream_);
    ASSERT_TRUE(actual.equals(expected))
        << describe(conversion) << " by " << converter->name() << ", offset " << layout.offset
        << ", padding " << layout.padding;
    LumaHistogram luma;
    if (counts_luma) count_luma(as_const(expected.on_host()), 0, height, luma);
    ASSERT_EQ(counts.download(), luma)
        << describe(conversion) << " by " << converter->name() << ", offset " << layout.offset;
  }

  std::mt19937 random_{4711};
};

class CudaConverterFormatTest : public CudaConverterTest,
                                public testing::WithParamInterface<PixelFormat> {};

TEST_P(CudaConverterFormatTest, EqualsTheReferenceAtEverySize) {
  std::size_t turn = 0;
  for (const auto& [width, height] : kSizes) {
    visit_pairs(GetParam(), width, height, turn, [&](const Conversion& conversion) {
      if (HasFatalFailure()) return;
      expect_equal(conversion, kLayouts[turn % std::size(kLayouts)]);
    });
  }
}

TEST_P(CudaConverterFormatTest, CountsTheLumaOfEverySize) {
  std::size_t turn = 0;
  for (const auto& [width, height] : {std::pair{1, 1}, {3, 5}, {17, 9}, {131, 2}, {515, 6}}) {
    visit_pairs(GetParam(), width, height, turn, [&](const Conversion& conversion) {
      if (HasFatalFailure()) return;
      expect_equal(conversion, kLayouts[turn % std::size(kLayouts)], true);
    });
  }
}

// As many pixels as frames have: too many for the stand-in, in every pair of formats.
TEST_P(CudaConverterFormatTest, EqualsTheReferenceInWholeFrames) {
  std::size_t turn = 0;
  for (const auto& [width, height] : {std::pair{641, 479}, {1280, 720}}) {
    const int parts = stand_in::present() ? 16 : 1;
    visit_pairs(GetParam(), width / parts, height / parts, turn, [&](const Conversion& conversion) {
      if (HasFatalFailure()) return;
      expect_equal(conversion, kAligned, turn % 2 == 0);
    });
  }
}

TEST_P(CudaConverterFormatTest, EqualsTheReferenceInEveryMatrixAndRange) {
  std::size_t turn = 0;
  for (const PixelFormat target : kAllFormats) {
    for (const ColorSpec& from : all_colors(GetParam())) {
      for (const ColorSpec& to : all_colors(target)) {
        const Conversion conversion{
            5 + static_cast<int>(turn % 4), 3, GetParam(), from, target, to};
        if (!is_convertible(conversion)) continue;
        ++turn;
        expect_equal(conversion, kAligned);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(CudaConverterFormatTest, RowRangesGiveTheSameAsOneCallAndLeaveOtherRowsAlone) {
  std::size_t turn = 0;
  visit_pairs(GetParam(), 22, 9, turn, [&](const Conversion& conversion) {
    if (HasFatalFailure()) return;
    const auto [width, height, format, from, target_format, to, scaling, overlaid] = conversion;
    DeviceImage source(format, width, height);
    DeviceImage actual(target_format, width, height);
    DeviceImage expected(target_format, width, height);
    source.fill_random(random_);
    actual.fill(kPattern);
    expected.fill(kPattern);
    source.upload(stream_);
    actual.upload(stream_);
    const auto converter = CudaConverter::make(conversion);
    const auto reference = make_reference_converter(conversion);
    const DeviceCounts counts(stream_);
    const CudaFrame frame{as_const(source.on_device()), actual.on_device(), counts.get()};
    // The last piece first. Rows must not change before it is their turn.
    for (const auto& [begin, end] : {std::pair{8, 9}, {2, 6}, {0, 2}, {6, 8}}) {
      reference->run(as_const(source.on_host()), expected.on_host(), begin, end);
      // Luma is counted every second time.
      ASSERT_EQ(turn % 2 == 0 ? converter->enqueue({&frame, 1}, begin, end, stream_)
                              : converter->enqueue(frame.source, frame.target, begin, end, stream_),
                cudaSuccess);
      actual.download(stream_);
      ASSERT_TRUE(actual.equals(expected))
          << describe(conversion) << " rows " << begin << " to " << end;
    }
    LumaHistogram luma;
    if (turn % 2 == 0) count_luma(as_const(expected.on_host()), 0, height, luma);
    ASSERT_EQ(counts.download(), luma) << describe(conversion);
  });
}

INSTANTIATE_TEST_SUITE_P(, CudaConverterFormatTest, testing::ValuesIn(kAllFormats), FormatName());

// A uniform picture, in which all samples are counted in the same place, and one with another
// pixel.
TEST_F(CudaConverterTest, CountsUniformFrames) {
  const Conversion conversion{1030, 70, PixelFormat::kBgra, kRgbFull, PixelFormat::kNv12, {}};
  for (const bool one_differs : {false, true}) {
    DeviceImage source(conversion.source, conversion.width, conversion.height);
    DeviceImage target(conversion.target, conversion.width, conversion.height);
    source.fill(0);
    if (one_differs) source.on_host().row(0, 69)[4 * 1029 + 1] = 255;  // green
    source.upload(stream_);
    const DeviceCounts counts(stream_);
    const CudaFrame frame{as_const(source.on_device()), target.on_device(), counts.get()};
    ASSERT_EQ(CudaConverter::make(conversion)->enqueue({&frame, 1}, 0, 70, stream_), cudaSuccess);
    LumaHistogram expected;
    expected.counts[16] = 1030 * 70 - (one_differs ? 1 : 0);
    expected.counts[173] = one_differs ? 1 : 0;  // 16 + 219 * 0.7152, rounded
    EXPECT_EQ(counts.download(), expected);
  }
}

// For pictures that are on the GPU and not converted there.
TEST_F(CudaConverterTest, CountsTheLumaOfAPicture) {
  for (const PixelFormat format : kAllFormats) {
    if (!has_luma(format)) continue;
    for (const DeviceLayout& layout : kLayouts) {
      for (const auto& [width, height] : {std::pair{1, 1}, {16, 3}, {37, 11}, {2051, 5}}) {
        DeviceImage image(format, width, height, layout);
        image.fill_random(random_);
        image.upload(stream_);
        const DeviceCounts counts(stream_);
        for (const auto& [begin, end] : {std::pair{height / 2, height}, {0, height / 2}}) {
          if (begin == end) continue;
          ASSERT_EQ(
              enqueue_luma_count(as_const(image.on_device()), begin, end, counts.get(), stream_),
              cudaSuccess);
        }
        LumaHistogram expected;
        count_luma(as_const(image.on_host()), 0, height, expected);
        ASSERT_EQ(counts.download(), expected) << info(format).name << ' ' << width;
      }
    }
  }
}

TEST_F(CudaConverterTest, EqualsTheReferenceInOddFramesOfManyBlocks) {
  constexpr std::pair<PixelFormat, PixelFormat> kPairs[] = {
      {PixelFormat::kBgra, PixelFormat::kNv12},  {PixelFormat::kArgb, PixelFormat::kI420},
      {PixelFormat::kBgr24, PixelFormat::kNv12}, {PixelFormat::kRgba, PixelFormat::kYuv444},
      {PixelFormat::kBgra, PixelFormat::kI422},  {PixelFormat::kYuyv, PixelFormat::kI420}};
  // So many pixels that the warps which count luma have several turns. The stand-in has few warps.
  const auto [width, height] = stand_in::present() ? std::pair{641, 479} : std::pair{4097, 2163};
  std::size_t turn = 0;
  for (const auto& [source, target] : kPairs) {
    const ColorSpec from = info(source).rgb ? kRgbFull : ColorSpec{};
    const Siting siting = kSitings[turn % std::size(kSitings)];
    expect_equal({width,
                  height,
                  source,
                  {from.matrix, from.range, siting},
                  target,
                  {Matrix::kBt601, Range::kFull, siting}},
                 kLayouts[turn % 2], true);
    ++turn;
  }
}

// Every colour on a GPU; fewer of them if the host does the work.
TEST_F(CudaConverterTest, AllColoursAreExact) {
  const int step = stand_in::present() ? 15 : 1;
  const int values = 255 / step + 1;
  const int width = values * 4;  // 4 pixels of each red value
  const int height = values * values / (step == 1 ? 4 : 1);
  DeviceImage source(PixelFormat::kRgba, width, height);
  std::uint8_t* const first = source.on_host().planes[0].data;
  for (int i = 0; i < width * height; ++i) {
    const int color = step == 1 ? i : i / 4;
    std::uint8_t* pixel = first + 4 * static_cast<std::ptrdiff_t>(i);
    pixel[0] = static_cast<std::uint8_t>(color % values * step);
    pixel[1] = static_cast<std::uint8_t>(color / values % values * step);
    pixel[2] = static_cast<std::uint8_t>(color / values / values * step);
  }
  source.upload(stream_);
  for (const Matrix matrix : kYuvMatrices) {
    for (const Range range : kRanges) {
      for (const PixelFormat target : {PixelFormat::kI444, PixelFormat::kNv12}) {
        const Conversion conversion{width,    height, PixelFormat::kRgba,
                                    kRgbFull, target, {matrix, range}};
        DeviceImage actual(target, width, height);
        DeviceImage expected(target, width, height);
        expected.fill(kPattern);
        actual.fill(kPattern);
        actual.upload(stream_);
        convert_reference(conversion, as_const(source.on_host()), expected.on_host());
        ASSERT_EQ(
            CudaConverter::make(conversion)
                ->enqueue(as_const(source.on_device()), actual.on_device(), 0, height, stream_),
            cudaSuccess);
        actual.download(stream_);
        EXPECT_TRUE(actual.equals(expected)) << describe(conversion);
      }
    }
  }
}

// Up to more frames than a launch takes, aligned and not aligned.
TEST_F(CudaConverterTest, FramesOfSeveralFeedsAreConvertedTogether) {
  for (const PixelFormat format : {PixelFormat::kBgra, PixelFormat::kRgb24, PixelFormat::kNv12}) {
    const ColorSpec from = info(format).rgb ? kRgbFull : ColorSpec{};
    const Conversion conversion{30, 6, format, from, PixelFormat::kI420, {Matrix::kBt601}};
    const auto converter = CudaConverter::make(conversion);
    for (const DeviceLayout& layout : {kAligned, kOddAddress}) {
      for (const std::size_t count : {2, 16, 17, 35}) {
        std::vector<std::unique_ptr<DeviceImage>> sources, targets, expected;
        std::vector<CudaFrame> frames;
        for (std::size_t i = 0; i < count; ++i) {
          const auto add = [&](auto& images, PixelFormat of) -> DeviceImage& {
            images.push_back(std::make_unique<DeviceImage>(of, 30, 6, layout));
            images.back()->fill(kPattern);
            return *images.back();
          };
          DeviceImage& source = add(sources, format);
          source.fill_random(random_);
          source.upload(stream_);
          DeviceImage& target = add(targets, conversion.target);
          target.upload(stream_);
          convert_reference(conversion, as_const(source.on_host()),
                            add(expected, conversion.target).on_host());
          frames.push_back({as_const(source.on_device()), target.on_device(), nullptr});
        }
        ASSERT_EQ(converter->enqueue(frames, 0, 6, stream_), cudaSuccess);
        for (std::size_t i = 0; i < count; ++i) {
          targets[i]->download(stream_);
          EXPECT_TRUE(targets[i]->equals(*expected[i])) << "frame " << i << " of " << count;
        }
      }
    }
  }
}

TEST_F(CudaConverterTest, RemapsFramesOfManyBlocksExactly) {
  constexpr std::pair<PixelFormat, PixelFormat> kPairs[] = {
      {PixelFormat::kI420, PixelFormat::kNv12},  {PixelFormat::kNv12, PixelFormat::kI420},
      {PixelFormat::kNv12, PixelFormat::kNv12},  {PixelFormat::kI420, PixelFormat::kI420},
      {PixelFormat::kI422, PixelFormat::kI422},  {PixelFormat::kI444, PixelFormat::kI444},
      {PixelFormat::kI422, PixelFormat::kGray8}, {PixelFormat::kGray8, PixelFormat::kGray8}};
  for (const auto& [source, target] : kPairs) {
    for (const Range range : kRanges) {
      const Range other = range == Range::kFull ? Range::kLimited : Range::kFull;
      for (const DeviceLayout& layout : {kAligned, kBottomUp, kWordAligned}) {
        for (const int width : {641, 2049}) {
          expect_equal({width, 79, source, {.range = range}, target, {.range = other}}, layout);
        }
      }
    }
  }
}

TEST_F(CudaConverterTest, WhatHasAFastPathTakesItAndTheRestTheGeneralOne) {
  const auto name = [](PixelFormat source, const ColorSpec& from, PixelFormat target) {
    return std::string(CudaConverter::make({8, 8, source, from, target, {}})->name());
  };
  for (const PixelFormat source : kAllFormats) {
    if (!info(source).rgb) continue;
    EXPECT_EQ(name(source, kRgbFull, PixelFormat::kNv12), "rgb-to-yuv");
    EXPECT_EQ(name(source, kRgbFull, PixelFormat::kYuv444), "rgb-to-yuv");
    EXPECT_EQ(name(source, {Matrix::kRgb, Range::kLimited}, PixelFormat::kNv12), "general");
  }
  for (const PixelFormat source : {PixelFormat::kI420, PixelFormat::kNv12}) {
    for (const Range range : kRanges) {
      const ColorSpec from{.range = range};
      const PixelFormat other =
          source == PixelFormat::kI420 ? PixelFormat::kNv12 : PixelFormat::kI420;
      EXPECT_EQ(name(source, from, other), "remap");
      EXPECT_EQ(name(source, from, PixelFormat::kGray8), "remap");
    }
    EXPECT_EQ(name(source, {.range = Range::kFull}, source), "remap");
  }
  EXPECT_EQ(name(PixelFormat::kI420, {Matrix::kBt601}, PixelFormat::kNv12), "rematrix");
  EXPECT_EQ(name(PixelFormat::kNv12, {Matrix::kBt601}, PixelFormat::kNv12), "rematrix");
  EXPECT_EQ(name(PixelFormat::kI422, {Matrix::kBt601}, PixelFormat::kNv12), "general");
  EXPECT_EQ(name(PixelFormat::kI422, {}, PixelFormat::kNv12), "general");
  for (const PixelFormat source : {PixelFormat::kYuyv, PixelFormat::kUyvy}) {
    for (const PixelFormat target : {PixelFormat::kI420, PixelFormat::kNv12, PixelFormat::kI422}) {
      EXPECT_EQ(name(source, {}, target), "unpack");
      EXPECT_EQ(name(source, {.range = Range::kFull}, target), "general");
    }
  }
}

/// Of so many samples some have a value so near to the next code that fixed point cannot tell which
/// it is.
TEST_F(CudaConverterTest, AnotherMatrixIsExactAlsoNextToATie) {
  for (const Siting siting : kSitings) {
    for (const Range range : kRanges) {
      if (HasFatalFailure()) return;
      expect_equal({2048,
                    512,
                    PixelFormat::kNv12,
                    {Matrix::kBt601, Range::kLimited, siting},
                    PixelFormat::kI420,
                    {Matrix::kBt709, range, siting}},
                   kAligned);
    }
  }
}

class CudaConverterStandInTest : public StandInTest {};

TEST_F(CudaConverterStandInTest, ALaunchTakesUpToSixteenFramesAndAFailedOneIsReported) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  {
    const Conversion conversion{8, 2, PixelFormat::kBgra, kRgbFull, PixelFormat::kNv12, {}};
    DeviceImage source(conversion.source, 8, 2), target(conversion.target, 8, 2);
    const std::vector<CudaFrame> frames(
        33, {as_const(source.on_device()), target.on_device(), nullptr});
    const auto converter = CudaConverter::make(conversion);
    EXPECT_EQ(converter->enqueue(frames, 0, 2, stream), cudaSuccess);
    EXPECT_EQ(stand_in::calls("cudaLaunchKernel"), 3);
    stand_in::fail_nth_call("cudaLaunchKernel", 2, cudaErrorLaunchOutOfResources);
    EXPECT_EQ(converter->enqueue(frames, 0, 2, stream), cudaErrorLaunchOutOfResources);
    EXPECT_EQ(stand_in::calls("cudaLaunchKernel"), 5);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  }
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

}  // namespace
}  // namespace framelane
