#pragma once

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <array>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

extern "C" {
#include <libavutil/log.h>
}

#include "pipeline/av/av_log_capture.hpp"
#include "pipeline/feed/feed.hpp"
#include "pipeline/stage/cpu_stage.hpp"
#include "pipeline/stage/cuda/cuda_device.hpp"
#include "tests/cuda_runtime/fixture.hpp"
#include "tests/nvenc/control.hpp"
#include "tests/pipeline/base/wait.hpp"
#include "tests/pipeline/feed/raw_encoder.hpp"
#include "tests/pipeline/frames/random_bytes.hpp"
#include "tests/pipeline/source/media_files.hpp"

namespace framelane {

/// A feed on a GPU of the stand-in runtime, whose encoders may be FFmpeg's own h264_nvenc over the
/// stand-in NVENC.
class NvencTest : public StandInTest {
 protected:
  static constexpr int kFrames = 20;

  void SetUp() override {
    StandInTest::SetUp();
    spdlog::set_level(spdlog::level::off);
    av_log_set_callback([](void*, int level, const char* format, va_list values) {
      if (level > AV_LOG_ERROR) return;
      std::array<char, 1024> line{};
      std::vsnprintf(line.data(), line.size(), format, values);
      AvLogCapture::take(line.data());  // as the daemon does
    });
    fake_nvenc::reset();
    options_.name = "gate";
    options_.once = true;
    set_source("bgra", 130, 66, 4);
    device_ = CudaDevice::open(0, cpu_);
  }
  void TearDown() override {
    device_.reset();
    EXPECT_TRUE(testing::comes_true([] { return fake_nvenc::sessions() == 0; }))
        << "encoders left open";
    av_log_set_callback(av_log_default_callback);
    StandInTest::TearDown();
  }

  void set_source(const std::string& format, int width, int height, double bytes_per_pixel) {
    testing::Bytes frames(static_cast<std::size_t>(width * height * bytes_per_pixel) * kFrames);
    testing::fill_random(frames, 7);
    testing::write_file(folder_ / "in.raw", frames);
    options_.input.url = folder_ / "in.raw";
    options_.input.format = "rawvideo";
    options_.input.raw = {.pixel_format = format, .width = width, .height = height};
  }
  EncodeOptions& add_encode(const std::string& name, std::vector<CodecCandidate> codecs,
                            std::optional<PixelFormat> format) {
    EncodeOptions encode;
    encode.name = name;
    encode.codecs = std::move(codecs);
    encode.format = format;
    OutputOptions output;
    output.name = output.from = name;
    output.url = folder_ / (name + ".nut");
    output.existing = Existing::kReplace;
    options_.encodes.push_back(std::move(encode));
    options_.outputs.push_back(std::move(output));
    return options_.encodes.back();
  }
  std::unique_ptr<Feed> start(const std::shared_ptr<Device>& device) {
    std::vector<FeedStats::EncodeSpec> encodes;
    std::vector<std::string> outputs;
    for (const EncodeOptions& encode : options_.encodes) {
      encodes.push_back({encode.name, false});
      outputs.push_back(encode.name);
    }
    stats_ = std::make_shared<FeedStats>(options_.name, encodes, outputs, options_.lanes);
    return Feed::start(
        options_, stats_, device, [] {}, deadlines_);
  }
  /// Runs the feed to its end. `while_it_runs` is called as often as something may have changed.
  Feed::Outcome run(
      const std::shared_ptr<Device>& device, const std::function<void()>& while_it_runs = [] {}) {
    const auto feed = start(device);
    EXPECT_TRUE(testing::comes_true([&] {
      while_it_runs();
      return feed->outcome().has_value();
    }));
    const Feed::Outcome outcome = feed->outcome().value_or(
        Feed::Outcome{Feed::Outcome::Kind::kFailed, FeedFault::kInternal, "it did not end"});
    for (const EncodeCounts& counts : stats_->ledger().encodes) {
      EXPECT_EQ(counts.in_flight, 0);
      EXPECT_EQ(counts.in,
                std::accumulate(counts.dropped.begin(), counts.dropped.end(), counts.out));
    }
    return outcome;
  }
  EncodeCounts counts(std::size_t encode = 0) const { return stats_->ledger().encodes[encode]; }
  /// The pictures in the encode's file, as planes.
  testing::Bytes pictures(const std::string& encode, const std::string& format = "yuv420p") const {
    return testing::ffmpeg("-i '" + (folder_ / (encode + ".nut")) +
                           "' -fps_mode passthrough -f rawvideo -pix_fmt " + format + " -");
  }
  /// What the CPU makes of the source, in that format.
  testing::Bytes reference(PixelFormat format, const std::string& planes = "yuv420p",
                           const PictureOptions& picture = {},
                           const std::vector<OverlayOptions>& overlays = {}) {
    auto encodes = std::exchange(options_.encodes, {});
    auto outputs = std::exchange(options_.outputs, {});
    EncodeOptions& encode = add_encode("reference", {testing::raw_encoder()}, format);
    encode.picture = picture;
    encode.overlays = overlays;
    EXPECT_EQ(run(cpu_).kind, Feed::Outcome::Kind::kEnded);
    options_.encodes = std::move(encodes);
    options_.outputs = std::move(outputs);
    return pictures("reference", planes);
  }
  std::uint64_t steps(StageStep step) const {
    return stats_->steps[index_of(step)].snapshot().count;
  }

  const testing::TempFolder folder_;
  const std::shared_ptr<Device> cpu_ = std::make_shared<CpuDevice>(2);
  FeedOptions options_;
  FeedDeadlines deadlines_;
  std::shared_ptr<CudaDevice> device_;
  std::shared_ptr<FeedStats> stats_;
};

}  // namespace framelane
