// Raw output is the frame's pixels and nothing else, whatever pitch they had on the way: compared
// byte for byte with what went in, and with the reference's conversion.

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include "kernels/reference.hpp"
#include "pipeline/feed/feed.hpp"
#include "tests/pipeline/feed/raw_encoder.hpp"
#include "tests/pipeline/frames/random_bytes.hpp"
#include "tests/pipeline/source/media_files.hpp"

namespace framelane {
namespace {

using namespace std::chrono_literals;
using testing::append_pixels;
using testing::Bytes;
using testing::read_file;
using testing::TempFolder;
using testing::write_file;

constexpr int kFrames = 3;

struct Size {
  int width;
  int height;
};

/// Random frames, one after the other without padding, as a raw file has them.
class Frames {
 public:
  Frames(PixelFormat format, Size size) {
    for (int i = 0; i < kFrames; ++i) {
      images_.push_back(allocate_image(pool_, format, size.width, size.height));
      const AVBufferRef& buffer = *images_.back().buffer.get();
      testing::fill_random({buffer.data, buffer.size}, static_cast<std::uint64_t>(i));
    }
  }
  Bytes bytes() const {
    Bytes all;
    for (const PooledImage& frame : images_) append_pixels(as_const(frame.image), all);
    return all;
  }
  Bytes converted(const Conversion& conversion) {
    Bytes all;
    for (const PooledImage& frame : images_) {
      const PooledImage target =
          allocate_image(pool_, conversion.target, conversion.width, conversion.height);
      convert_reference(conversion, as_const(frame.image), target.image);
      append_pixels(as_const(target.image), all);
    }
    return all;
  }

 private:
  FramePool pool_;
  std::vector<PooledImage> images_;
};

/// A feed from raw frames to raw frames; what its output holds.
Bytes through_a_feed(const Bytes& input, const char* format, Size size,
                     std::optional<PixelFormat> target) {
  spdlog::set_level(spdlog::level::off);
  const TempFolder folder;
  write_file(folder / "in.raw", input);
  FeedOptions options;
  options.name = "gate";
  options.once = true;
  options.input.url = folder / "in.raw";
  options.input.format = "rawvideo";
  options.input.raw = RawVideoOptions{
      .pixel_format = format, .width = size.width, .height = size.height, .rate = {25, 1}};
  EncodeOptions encode;
  encode.name = "same";
  encode.codecs.push_back(testing::raw_encoder());
  encode.format = target;
  options.encodes.push_back(encode);
  OutputOptions output;
  output.name = "raw";
  output.from = "same";
  output.url = folder / "out.raw";
  output.format = "rawvideo";
  options.outputs.push_back(output);
  auto stats =
      std::make_shared<FeedStats>("gate", std::vector<FeedStats::EncodeSpec>{{"same", false}},
                                  std::vector<std::string>{"raw"}, options.lanes);
  const auto feed = Feed::start(options, stats, make_cpu_device(), [] {});
  EXPECT_TRUE(feed->join_until(std::chrono::steady_clock::now() + 60s));
  EXPECT_EQ(stats->ledger().encodes[0].out, static_cast<std::uint64_t>(kFrames));
  return read_file(folder / "out.raw");
}

struct Format {
  const char* name;
  PixelFormat layout;
};
void PrintTo(const Format& format, std::ostream* out) { *out << format.name; }
void PrintTo(const Size& size, std::ostream* out) { *out << size.width << "x" << size.height; }

class RawOutputTest : public ::testing::TestWithParam<std::tuple<Format, Size>> {};

TEST_P(RawOutputTest, ComesOutAsItWentIn) {
  const auto [format, size] = GetParam();
  const Bytes input = Frames(format.layout, size).bytes();
  EXPECT_TRUE(through_a_feed(input, format.name, size, {}) == input);
}

const auto kSizes = ::testing::Values(Size{1, 1}, Size{3, 5}, Size{33, 18}, Size{64, 48});

INSTANTIATE_TEST_SUITE_P(Formats, RawOutputTest,
                         ::testing::Combine(::testing::Values(Format{"nv12", PixelFormat::kNv12},
                                                              Format{"yuv420p", PixelFormat::kI420},
                                                              Format{"yuv422p", PixelFormat::kI422},
                                                              Format{"yuv444p", PixelFormat::kI444},
                                                              Format{"yuyv422", PixelFormat::kYuyv},
                                                              Format{"uyvy422", PixelFormat::kUyvy},
                                                              Format{"gray", PixelFormat::kGray8},
                                                              Format{"bgr24", PixelFormat::kBgr24},
                                                              Format{"bgra", PixelFormat::kBgra}),
                                            kSizes));

class RawConversionTest : public ::testing::TestWithParam<std::tuple<Format, Size>> {};

TEST_P(RawConversionTest, IsTheReferencesPixels) {
  const auto [format, size] = GetParam();
  Frames frames(PixelFormat::kBgra, size);
  const Conversion conversion{
      .width = size.width,
      .height = size.height,
      .source = PixelFormat::kBgra,
      .source_color = {.matrix = Matrix::kRgb, .range = Range::kFull},
      .target = format.layout,
      .target_color = {
          .matrix = Matrix::kBt709, .range = Range::kLimited, .siting = Siting::kLeft}};
  EXPECT_TRUE(through_a_feed(frames.bytes(), "bgra", size, format.layout) ==
              frames.converted(conversion));
}

INSTANTIATE_TEST_SUITE_P(Targets, RawConversionTest,
                         ::testing::Combine(::testing::Values(Format{"nv12", PixelFormat::kNv12},
                                                              Format{"i420", PixelFormat::kI420},
                                                              Format{"i422", PixelFormat::kI422},
                                                              Format{"i444", PixelFormat::kI444}),
                                            kSizes));

}  // namespace
}  // namespace framelane
