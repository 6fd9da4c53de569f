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
  // This one's encoder stays open meanwhile.
  add_encode("host", {testing::raw_encoder()}, PixelFormat::kI420);
  options_.outputs.back().url = "null:";
  ASSERT_EQ(run(device_).kind, Feed::Outcome::Kind::kEnded);
  EXPECT_EQ(stats_->encode(0).codec(), "h264_nvenc");
  EXPECT_GT(counts().out, 60U);
  EXPECT_EQ(counts().out, counts().in);
  EXPECT_EQ(counts(1).out, counts(1).in);
  EXPECT_EQ(static_cast<std::uint64_t>(fake_nvenc::gpu_frames()), counts().out);
}

/// As quickly as any stop.
TEST_F(NvencSessionTest, AStopWhileTheOldEncoderOfANewFormatStillWorksIsQuickAndLosesNoCount) {
  constexpr std::uint64_t kOfFirstFormat = 10;
  const std::string clip = folder_ / "in.mjpeg";
  for (const char* size : {"160x96", "128x64"}) {
    testing::output_of("ffmpeg -v error -f lavfi -i testsrc2=size=" + std::string(size) +
                       ":rate=25 -frames:v " + std::to_string(kOfFirstFormat) +
                       " -c:v mjpeg -f mjpeg - >> '" + clip + "'");
  }
  options_.input = {};
  options_.input.url = clip;
  add_nvenc("main");
  const std::string unread = folder_ / "unread";
  ASSERT_EQ(::mkfifo(unread.c_str(), 0600), 0);
  const int reader = ::open(unread.c_str(), O_RDWR | O_CLOEXEC);  // has room for two frames
  options_.outputs.back().url = unread;
  options_.outputs.back().format = "h264";
  options_.outputs.back().queue = 2;
  const auto feed = start(device_);
  EXPECT_TRUE(testing::comes_true([&] { return counts().in == kOfFirstFormat + 1; }));
  feed->cancel(DropReason::kStop);
  EXPECT_TRUE(feed->join_until(std::chrono::steady_clock::now() + 10s));
  const EncodeCounts last = counts();
  EXPECT_EQ(last.in_flight, 0);
  EXPECT_LT(last.out, kOfFirstFormat);
  EXPECT_EQ(last.in, std::accumulate(last.dropped.begin(), last.dropped.end(), last.out));
  EXPECT_EQ(last.dropped[index_of(DropReason::kFeedFailed)], 0U);
  ::close(reader);
}

TEST_F(NvencSessionTest, AFeedThatLeavesAGpuWhichWorksKeepsItsSession) {
  fake_nvenc::limit_sessions(1);
  add_nvenc("main");
  options_.input.loop = true;
  const testing::LogCapture log;
  spdlog::set_level(spdlog::level::warn);
  const auto feed = start(device_);
  EXPECT_TRUE(testing::comes_true([&] { return fake_nvenc::gpu_frames() >= kFrames; }));
  stand_in::fail_nth_call("cudaLaunchKernel", 1, cudaErrorLaunchOutOfResources);
  EXPECT_TRUE(testing::comes_true([] { return fake_nvenc::copied_frames() >= kFrames; }));
  EXPECT_EQ(stats_->encode(0).codec(), "h264_nvenc");
  EXPECT_EQ(stats_->status().device, "cpu");
  EXPECT_FALSE(device_->lost());
  feed->drain();
  EXPECT_TRUE(feed->join_until(std::chrono::steady_clock::now() + 60s));
  EXPECT_EQ(log.count("the driver allows no further session"), 0U);
}

TEST_F(NvencSessionTest, AnEncodeThatKnowsNoOtherCodecIsDownUntilOneIsFree) {
  fake_nvenc::limit_sessions(0);
  add_encode("main", {{"h264_nvenc"}}, PixelFormat::kNv12);
  add_encode("host", {testing::raw_encoder()}, PixelFormat::kI420);
  for (OutputOptions& output : options_.outputs) output.url = "null:";
  options_.once = false;
  options_.input.loop = true;
  options_.input.pace = InputOptions::Pace::kRealtime;
  const auto feed = start(device_);
  EXPECT_TRUE(testing::comes_true([&] { return counts(1).out >= 5; }));
  const auto refusal = stats_->encode(0).reason();
  EXPECT_NE(refusal.find("the driver allows no further session on cuda:0"), std::string::npos)
      << refusal;
  EXPECT_EQ(counts(0).out, 0U);
  fake_nvenc::limit_sessions(1);
  EXPECT_TRUE(testing::comes_true([&] { return counts(0).out >= 5; }));
  EXPECT_EQ(stats_->encode(0).codec(), "h264_nvenc");
  EXPECT_FALSE(feed->outcome().has_value());
  feed->drain();
  EXPECT_TRUE(feed->join_until(std::chrono::steady_clock::now() + 60s));
}

TEST_F(NvencSessionTest, AFeedThatKnowsNoOtherCodecFailsAndSaysSo) {
  fake_nvenc::limit_sessions(0);
  add_encode("main", {{"h264_nvenc"}}, PixelFormat::kNv12);
  const Feed::Outcome outcome = run(device_);
  EXPECT_EQ(outcome.kind, Feed::Outcome::Kind::kFailed);
  EXPECT_EQ(outcome.fault, FeedFault::kMemory);
  EXPECT_NE(outcome.reason.find("the driver allows no further session on cuda:0"),
            std::string::npos)
      << outcome.reason;
}

/// An encoder that fails, and is opened again if the driver lets it.
class NvencFailureTest : public NvencSessionTest {
 protected:
  /// A frame fails in mid-stream. Expects that this codec then goes on, and that the ledger counts
  /// what was lost.
  void expect_to_go_on_with(const std::string& codec, bool no_session_after) {
    add_nvenc("main");
    options_.input.loop = true;
    const auto feed = start(device_);
    EXPECT_TRUE(testing::comes_true([&] { return counts().out >= 5; }));
    fake_nvenc::fail_frame(1, no_session_after);
    const auto lost = [&] { return counts().dropped[index_of(DropReason::kEncoder)]; };
    EXPECT_TRUE(testing::comes_true([&] { return lost() > 0; }));
    EXPECT_TRUE(testing::comes_true([&] { return stats_->encode(0).codec() == codec; }));
    const std::uint64_t before = counts().out;
    EXPECT_TRUE(testing::comes_true([&] { return counts().out >= before + kFrames; }));
    EXPECT_FALSE(feed->outcome().has_value());
    feed->drain();
    EXPECT_TRUE(feed->join_until(std::chrono::steady_clock::now() + 60s));
    EXPECT_EQ(counts().in, counts().out + lost());
  }
};

TEST_F(NvencFailureTest, InMidStreamItIsOpenedAgain) {
  expect_to_go_on_with("h264_nvenc", false);
  EXPECT_EQ(NvencSession::count("cuda:0"), 0);
}

TEST_F(NvencFailureTest, InMidStreamWithoutASessionTheNextCodecGoesOn) {
  expect_to_go_on_with("rawvideo", true);
}

TEST_F(NvencFailureTest, AtTheEndOfAFileWithoutASessionTheLossIsAFailure) {
  add_nvenc("main");
  fake_nvenc::fail_frame(kFrames, true);
  const Feed::Outcome outcome = run(device_);
  EXPECT_EQ(outcome.kind, Feed::Outcome::Kind::kFailed);
  EXPECT_EQ(outcome.fault, FeedFault::kMemory);
  EXPECT_EQ(outcome.reason,
            "encode main: its last frames are lost: h264_nvenc found no session to open again");
  EXPECT_GT(counts().dropped[index_of(DropReason::kEncoder)], 0U);
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
  /// silence is three times as long as the last one: Timeline takes one that has come twice for the
  /// source's usual pause.
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
