// The driver allows only so many sessions of NVENC: who has them, and who gets one.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "pipeline/encode/nvenc.hpp"
#include "tests/nvenc/nvenc_fixture.hpp"
#include "tests/pipeline/base/log_capture.hpp"

namespace framelane {
namespace {

using namespace std::chrono_literals;

class NvencSessionTest : public NvencTest {
 protected:
  static constexpr const char* kRefused =
      "using rawvideo, because h264_nvenc does not open here: the driver allows no further session "
      "on cuda:0, where framelane has 1 (OpenEncodeSessionEx failed: out of memory (10)";

  void add_nvenc(const std::string& name) {
    add_encode(name, {{"h264_nvenc"}, testing::raw_encoder()}, PixelFormat::kNv12);
    options_.outputs.back().url = "null:";
  }
};

TEST_F(NvencSessionTest, AnEncodeWithoutOneTakesTheNextCodecAndTheLogSaysWhoHasThem) {
  fake_nvenc::limit_sessions(1);
  add_nvenc("first");
  add_nvenc("second");
  options_.input.loop = true;
  std::size_t refused = 0;
  int most = 0;
  {
    const testing::LogCapture log;
    spdlog::set_level(spdlog::level::warn);
    const auto feed = start(device_);
    EXPECT_TRUE(testing::comes_true([&] { return counts(0).out >= 5 && counts(1).out >= 5; }));
    EXPECT_EQ(stats_->encode(0).codec(), "h264_nvenc");
    EXPECT_EQ(stats_->encode(1).codec(), "rawvideo");
    most = NvencSession::count("cuda:0");
    feed->drain();
    EXPECT_TRUE(feed->join_until(std::chrono::steady_clock::now() + 60s));
    refused = log.count(kRefused);
  }
  EXPECT_EQ(refused, 1U);
  EXPECT_EQ(most, 1);
  EXPECT_EQ(NvencSession::count("cuda:0"), 0);
}

TEST_F(NvencSessionTest, OfANewFormatTheOldEncoderGivesItsOwnBack) {
  const std::string clip = folder_ / "in.ts";
  for (const char* size : {"160x96", "128x64", "160x96"}) {
    testing::output_of("ffmpeg -v error -f lavfi -i testsrc2=size=" + std::string(size) +
                       ":rate=25:duration=1 -c:v mpeg2video -f mpegts - >> '" + clip + "'");
  }
  options_.input = {};
  options_.input.url = clip;
  fake_nvenc::limit_sessions(1);
  add_nvenc("main");
  add_encode("host", {testing::raw_encoder()},
             PixelFormat::kI420);  // its encoder stays open meanwhile
  options_.outputs.back().url = "null:";
  ASSERT_EQ(run(device_).kind, Feed::Outcome::Kind::kEnded);
  EXPECT_EQ(stats_->encode(0).codec(), "h264_nvenc");
  EXPECT_GT(counts().out, 60U);
  EXPECT_EQ(counts().out, counts().in);
  EXPECT_EQ(counts(1).out, counts(1).in);
  EXPECT_EQ(static_cast<std::uint64_t>(fake_nvenc::gpu_frames()), counts().out);
}

/// A live feed of raw frames, which come when the test sends them. The encoder is closed while none
/// come.
class SilentFeedTest : public NvencSessionTest {
 protected:
  static constexpr auto kSplitAfter = 100ms;

  void SetUp() override {
    NvencSessionTest::SetUp();
    if (IsSkipped()) return;
    const std::string fifo = folder_ / "fifo";
    EXPECT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
    options_.once = false;
    options_.split_after = kSplitAfter;
    options_.input.url = fifo;
    options_.input.pace = InputOptions::Pace::kRealtime;
    options_.input.raw->timestamps = RawVideoOptions::Timestamps::kArrival;
    writer_ = ::open(fifo.c_str(), O_RDWR | O_CLOEXEC);
    add_nvenc("main");
  }
  void TearDown() override {
    if (feed_) {
      EXPECT_FALSE(feed_->outcome().has_value());
      feed_->drain();
      EXPECT_TRUE(feed_->join_until(std::chrono::steady_clock::now() + 60s));
      const EncodeCounts last = counts();
      EXPECT_EQ(last.in_flight, 0);
      EXPECT_EQ(last.in, std::accumulate(last.dropped.begin(), last.dropped.end(), last.out));
      feed_.reset();
    }
    if (writer_ >= 0) ::close(writer_);
    NvencSessionTest::TearDown();
  }
  void send() {
    const std::vector<char> frame(130 * 66 * 4, 64);
    EXPECT_EQ(::write(writer_, frame.data(), frame.size()), static_cast<ssize_t>(frame.size()));
    ++sent_;
  }
  /// Sends frames at 25 a second until one has been encoded with this codec.
  bool send_until(const std::string& codec) {
    const std::uint64_t before = counts().out;
    return testing::comes_true([&] {
      send();
      std::this_thread::sleep_for(40ms);
      return stats_->encode(0).codec() == codec && counts().out > before;
    });
  }
  /// The same, but the source is silent before each frame for so long that it counts as gone. Each
  /// silence is longer than the last one: one that comes a second time is usual for the source.
  bool send_after_silence_until(const std::string& codec) {
    std::chrono::milliseconds silence = 4 * kSplitAfter;
    return testing::comes_true([&] {
      std::this_thread::sleep_for(silence);
      silence *= 3;
      send();
      EXPECT_TRUE(testing::comes_true([&] {
        const EncodeCounts now = counts();
        return now.in == sent_ && now.in_flight == 0;
      }));
      return stats_->encode(0).codec() == codec;
    });
  }

  int writer_ = -1;
  std::uint64_t sent_ = 0;
  std::unique_ptr<Feed> feed_;
};

TEST_F(SilentFeedTest, OnceOneIsFreeNvencIsTakenAgainWhenTheSourceComesBack) {
  fake_nvenc::limit_sessions(0);
  feed_ = start(device_);
  ASSERT_TRUE(send_until("rawvideo"));
  fake_nvenc::limit_sessions(1);
  ASSERT_TRUE(send_until("rawvideo")) << "an encoder that works stays";
  EXPECT_TRUE(send_after_silence_until("h264_nvenc"));
  EXPECT_TRUE(send_until("h264_nvenc"));
  EXPECT_EQ(NvencSession::count("cuda:0"), 1);
}

TEST_F(SilentFeedTest, WithoutOneWhenTheSourceComesBackTheNextCodecGoesOn) {
  fake_nvenc::limit_sessions(1);
  feed_ = start(device_);
  ASSERT_TRUE(send_until("h264_nvenc"));
  EXPECT_TRUE(testing::comes_true([] { return fake_nvenc::sessions() == 0; }));
  EXPECT_TRUE(testing::comes_true([] { return NvencSession::count("cuda:0") == 0; }));
  fake_nvenc::limit_sessions(0);
  EXPECT_TRUE(send_until("rawvideo"));
  EXPECT_GT(counts().dropped[index_of(DropReason::kEncoder)], 0U);
}

}  // namespace
}  // namespace framelane
