// Counts every operator new of the process, which is why this is a program of its own. What the
// stand-in for CUDA's runtime allocates is left out, as what NVIDIA's does is not framelane's.
extern "C" {
#include <libavutil/log.h>
}

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <new>
#include <thread>

#include "capture/framelane_capture.h"
#include "kernels/picture_mask.hpp"
#include "pipeline/base/failure.hpp"
#include "pipeline/feed/feed.hpp"
#include "pipeline/stage/gpu.hpp"
#include "tests/pipeline/source/media_files.hpp"
#ifdef FRAMELANE_WITH_CUDA
#include "tests/cuda_runtime/control.hpp"
#endif

namespace {

std::atomic<std::uint64_t> g_allocations{0};
/// The allocation of this thread that fails, counted from here; none if negative.
thread_local int g_failing = -1;

void count_allocation() {
#ifdef FRAMELANE_WITH_CUDA
  if (framelane::stand_in::inside()) return;
#endif
  if (g_failing >= 0 && g_failing-- == 0) throw std::bad_alloc();
  g_allocations.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

// Not inlined: the compiler would take the pair for a mismatch of new with free.
[[gnu::noinline]] void* operator new(std::size_t size) {
  count_allocation();
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
// Types aligned beyond max_align_t (SIMD buffers, cache lines) come through here.
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t alignment) {
  count_allocation();
  const auto align = static_cast<std::size_t>(alignment);
  if (void* memory = std::aligned_alloc(align, (size + align - 1) / align * align)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace framelane {
namespace {

using namespace std::chrono_literals;

/// What runs once a second or so (meters, segments) may allocate, and on a busy machine the frames
/// of a stretch take many seconds. What runs per frame would allocate 400 times at least.
constexpr std::uint64_t kAllowed = 100;

class FeedAllocationTest : public ::testing::Test {
 protected:
  FeedAllocationTest() {
    spdlog::set_level(spdlog::level::off);
    av_log_set_level(AV_LOG_FATAL);
    options_.name = "gate";
    options_.input.url = testing::clip("street_h264.mp4");
    options_.input.loop = true;
  }

  void add(EncodeOptions encode, const std::string& url = "null:") {
    OutputOptions output;
    output.name = encode.name;
    output.from = encode.name;
    output.url = url;
    options_.encodes.push_back(std::move(encode));
    options_.outputs.push_back(std::move(output));
  }
  void add_encode(const std::string& name, const std::string& codec, AvOptions codec_options,
                  std::optional<Range> range) {
    EncodeOptions encode;
    encode.name = name;
    encode.codecs.push_back({codec, std::move(codec_options)});
    encode.color.range = range;
    add(std::move(encode));
  }

  /// Allocations while `steps` packets or frames pass, after as many have passed. Pools grow when a
  /// busy machine lets one thread fall behind the others, so up to five stretches are counted,
  /// until there is one without that. What allocates per frame does so in each.
  std::uint64_t allocations_during(std::uint64_t steps) {
    std::vector<FeedStats::EncodeSpec> encodes;
    std::vector<std::string> outputs;
    for (const EncodeOptions& encode : options_.encodes) {
      encodes.push_back({encode.name, encode.copy_video, encode.transcodes_audio()});
      outputs.push_back(encode.name);
    }
    stats_ = std::make_shared<FeedStats>("gate", encodes, outputs, options_.lanes);
    const auto feed = Feed::start(options_, stats_, device_, [] {});
    std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
    for (std::uint64_t stretch = 1; stretch <= 5 && least > kAllowed; ++stretch) {
      wait_written(stretch * steps);
      const std::uint64_t before = g_allocations;
      wait_written((stretch + 1) * steps);
      least = std::min(least, g_allocations - before);
    }
    feed->cancel(DropReason::kStop);
    return least;
  }

  FeedOptions options_;
  std::shared_ptr<Device> device_ = make_cpu_device();
  std::shared_ptr<FeedStats> stats_;

 private:
  void wait_written(std::uint64_t packets) {
    const std::size_t outputs = options_.outputs.size();
    const auto written = [this, outputs] {
      return stats_->steps[index_of(StageStep::kMux)].snapshot().count / outputs;
    };
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    while (written() < packets) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline);
      std::this_thread::sleep_for(1ms);
    }
  }
};

class DeviceAllocationTest : public FeedAllocationTest,
                             public ::testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "cpu") return;
    GpuResult gpu = open_gpu(0, device_);
    ASSERT_NE(gpu.device, nullptr) << gpu.why;
    device_ = std::move(gpu.device);
  }
  void TearDown() override {
    if (stats_ != nullptr) {
      EXPECT_EQ(stats_->status().device, device_->name());
    }
  }
};

std::vector<std::string> devices() {
#ifdef FRAMELANE_WITH_CUDA
  if (stand_in::present()) return {"cpu", "cuda"};
#endif
  return {"cpu"};
}
INSTANTIATE_TEST_SUITE_P(On, DeviceAllocationTest, ::testing::ValuesIn(devices()),
                         [](const auto& device) { return device.param; });

TEST_P(DeviceAllocationTest, DecodingConvertingAndEncodingAllocateNothingPerFrame) {
  const testing::TempFolder folder;
  testing::ffmpeg("-i '" + options_.input.url + "' -vf scale=320:240 -c:v libx264 '" +
                  folder / "small.mp4" + "'");
  options_.input.url = folder / "small.mp4";
  add_encode("bypass", "libx264", {{"preset", "ultrafast"}}, std::nullopt);
  add_encode("converted", "mjpeg", {{"threads", "2"}}, Range::kFull);
  options_.analyse = true;
  EXPECT_LE(allocations_during(400), kAllowed);
  EXPECT_FALSE(std::isnan(stats_->luma_mean));
}

TEST_F(FeedAllocationTest, CopyingAllocatesNothingPerPacket) {
  EncodeOptions copy;
  copy.name = "main";
  copy.copy_video = true;
  add(std::move(copy));
  EXPECT_LE(allocations_during(2000), kAllowed);
}

// Copies with two outputs: the feed's threads do not fit where the first two did.
TEST_F(FeedAllocationTest, AFeedThatGetsNoMemoryToStartFailsWhereverThatIs) {
  for (const char* name : {"one", "two"}) {
    EncodeOptions copy;
    copy.name = name;
    copy.copy_video = true;
    add(std::move(copy));
  }
  int failed = 0;
  for (bool started = false; !started; ++failed) {
    ASSERT_LT(failed, 1000);
    FeedOptions options = options_;
    const auto stats = std::make_shared<FeedStats>(
        "gate", std::vector<FeedStats::EncodeSpec>{{"one", true, false}, {"two", true, false}},
        std::vector<std::string>{"one", "two"}, options_.lanes);
    g_failing = failed;
    try {
      const auto feed = Feed::start(std::move(options), stats, device_, [] {});
      g_failing = -1;
      started = true;
      feed->cancel(DropReason::kStop);
    } catch (const FeedError& error) {
      g_failing = -1;
      EXPECT_EQ(error.code(), FeedFault::kMemory) << error.what();
    }
  }
  EXPECT_GT(failed, 10);
}

TEST_P(DeviceAllocationTest, RawVideoConvertedEncodedAndMuxedAllocatesNothingPerFrame) {
  const testing::TempFolder folder;
  constexpr int kWidth = 160;
  constexpr int kHeight = 120;
  testing::write_file(folder / "screen.bgra", testing::Bytes(10 * kWidth * kHeight * 4, 0x55));
  options_.input.url = folder / "screen.bgra";
  options_.input.format = "rawvideo";
  options_.input.raw = RawVideoOptions{.pixel_format = "bgra", .width = kWidth, .height = kHeight};
  EncodeOptions encode;
  encode.name = "live";
  encode.codecs.push_back({"libx264", {{"preset", "ultrafast"}}});
  encode.format = PixelFormat::kNv12;
  add(std::move(encode), folder / "live.ts");
  options_.analyse = true;
  EXPECT_LE(allocations_during(1000), kAllowed);
  EXPECT_EQ(stats_->luma_mean, 89.0);  // 16 + 219 * 0x55 / 255
}

TEST_F(FeedAllocationTest, ReadingARawFileAheadAllocatesNothingPerFrame) {
  const testing::TempFolder folder;
  constexpr int kWidth = 640;
  constexpr int kHeight = 360;
  testing::write_file(folder / "screen.bgra", testing::Bytes(10 * kWidth * kHeight * 4, 0x55));
  options_.input.url = folder / "screen.bgra";
  options_.input.format = "rawvideo";
  options_.input.raw = RawVideoOptions{.pixel_format = "bgra", .width = kWidth, .height = kHeight};
  add_encode("nothing", "wrapped_avframe", {}, std::nullopt);
  EXPECT_LE(allocations_during(1000), kAllowed);
}

TEST_P(DeviceAllocationTest, ReadingSharedMemoryAllocatesNothingPerFrame) {
  const testing::TempFolder folder;
  const std::string socket = folder / "cap.sock";
  framelane_capture_options producer{};
  producer.socket_path = socket.c_str();
  producer.frame_size = std::size_t{160} * 120 * 4;
  framelane_capture* capture = nullptr;
  ASSERT_EQ(framelane_capture_open(&producer, &capture), 0) << framelane_capture_explain();
  std::atomic<bool> ends{false};
  std::thread publishing([&] {
    while (!ends) {
      void* frame = nullptr;
      if (framelane_capture_borrow(capture, 10, &frame) != 0) continue;
      framelane_capture_publish(capture, frame, framelane_capture_now());
    }
  });
  options_.input.loop = false;
  options_.input.url = "shm:" + socket;
  options_.input.format = "rawvideo";
  options_.input.raw = RawVideoOptions{.pixel_format = "bgra", .width = 160, .height = 120};
  options_.on_full = OnFull::kBlock;
  EncodeOptions encode;
  encode.name = "live";
  encode.codecs.push_back({"libx264", {{"preset", "ultrafast"}}});
  add(std::move(encode));
  EXPECT_LE(allocations_during(1000), kAllowed);
  EXPECT_EQ(stats_->host_copies[index_of(HostCopy::kDecoder)], 0u);
  ends = true;
  publishing.join();
  framelane_capture_close(capture);
}

TEST_F(FeedAllocationTest, CopyingPicturesAndSoundToAFileAllocatesNothingPerPacket) {
  const testing::TempFolder folder;
  testing::ffmpeg("-i '" + options_.input.url +
                  "' -f lavfi -i sine=duration=4.2 -c:v copy -c:a aac '" + folder / "av.mkv" + "'");
  options_.input.url = folder / "av.mkv";
  EncodeOptions copy;
  copy.name = "main";
  copy.copy_video = true;
  copy.copy_audio = true;
  add(std::move(copy), folder / "out.mkv");
  EXPECT_LE(allocations_during(5000), kAllowed);
}

TEST_F(FeedAllocationTest, TranscodingSoundAllocatesNothingPerPacket) {
  const testing::TempFolder folder;
  testing::ffmpeg("-i '" + options_.input.url +
                  "' -f lavfi -i sine=duration=4.2 -c:v copy -c:a aac '" + folder / "av.mkv" + "'");
  options_.input.url = folder / "av.mkv";
  EncodeOptions sound;
  sound.name = "main";
  sound.copy_video = true;
  sound.audio_codecs = {{"aac"}};
  add(std::move(sound), folder / "out.mkv");
  EXPECT_LE(allocations_during(5000), kAllowed);
}

/// A lane lives on after a frame that there was no memory to mask.
TEST(MaskAllocationTest, AMaskCoversAfterEveryAllocationThatFailed) {
  const MaskShape shape{.polygon = {{0, 0}, {1, 0}, {1, 1}, {0, 1}},
                        .style = MaskShape::Style::kPixelate};
  constexpr int kWidth = 4096;  // wider than any picture that this thread has masked
  constexpr int kHeight = 4;
  const PictureMask mask({&shape, 1}, PixelFormat::kGray8, {kWidth, kHeight}, {});
  std::vector<std::uint8_t> bytes(std::size_t{kWidth} * kHeight);
  const ImageView picture{PixelFormat::kGray8, kWidth, kHeight, {{{bytes.data(), kWidth}}}};
  int failures = 0;
  for (bool failed = true; failed; failures += failed ? 1 : 0) {
    g_failing = failures;
    failed = false;
    try {
      mask.apply(picture);
    } catch (const std::bad_alloc&) {
      failed = true;
    }
    g_failing = -1;
    std::fill(bytes.begin(), bytes.end(), std::uint8_t{0});
    bytes[0] = 255;
    if (failed) continue;
    mask.apply(picture);
    EXPECT_LT(bytes[0], 255);
  }
  EXPECT_GT(failures, 0);
}

}  // namespace
}  // namespace framelane
