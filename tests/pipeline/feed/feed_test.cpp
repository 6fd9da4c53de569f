#include "pipeline/feed/feed.hpp"

extern "C" {
#include <libavutil/log.h>
}

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>

#include "pipeline/base/av_option.hpp"
#include "pipeline/encode/encode_options.hpp"
#include "pipeline/feed/feed_options.hpp"
#include "pipeline/output/output_options.hpp"
#include "pipeline/source/input_options.hpp"
#include "tests/pipeline/frames/held_registrar.hpp"
#include "tests/pipeline/source/media_files.hpp"
#include "tests/pipeline/stage/device_wrapper.hpp"

namespace framelane {
namespace {

using namespace std::chrono_literals;

const std::string kClip = FRAMELANE_TEST_DATA "/street_h264.mp4";
constexpr std::uint64_t kClipFrames = 42;

/// Runs feeds over real files and waits for them.
class FeedTest : public ::testing::Test {
 protected:
  FeedTest() {
    spdlog::set_level(spdlog::level::off);
    av_log_set_level(AV_LOG_FATAL);
    options_.name = "gate";
    options_.once = true;
    options_.input.url = kClip;
  }

  EncodeOptions& add_encode(const std::string& name, const std::string& codec,
                            AvOptions codec_options = {}) {
    EncodeOptions encode;
    encode.name = name;
    encode.codecs.push_back({codec, std::move(codec_options)});
    options_.encodes.push_back(std::move(encode));
    return options_.encodes.back();
  }
  void add_copy(const std::string& name) {
    EncodeOptions encode;
    encode.name = name;
    encode.copy_video = true;
    options_.encodes.push_back(std::move(encode));
  }
  void add_output(const std::string& name, const std::string& from, const std::string& url) {
    OutputOptions output;
    output.name = name;
    output.from = from;
    output.url = url;
    options_.outputs.push_back(std::move(output));
  }
  std::string file(const std::string& name) const { return folder_ / name; }

  void start() {
    std::vector<FeedStats::EncodeSpec> encodes;
    for (const EncodeOptions& encode : options_.encodes) {
      encodes.push_back({encode.name, encode.copy_video});
    }
    std::vector<std::string> outputs;
    for (const OutputOptions& output : options_.outputs) outputs.push_back(output.name);
    stats_ = std::make_shared<FeedStats>(options_.name, encodes, outputs, options_.lanes);
    feed_ = Feed::start(options_, stats_, device_, [] {});
  }
  Feed::Outcome wait() {
    EXPECT_TRUE(feed_->join_until(std::chrono::steady_clock::now() + 60s));
    return feed_->outcome().value_or(
        Feed::Outcome{Feed::Outcome::Kind::kFailed, FeedFault::kInternal, "it did not end"});
  }
  Feed::Outcome run() {
    start();
    return wait();
  }
  /// Asks again and again, as the supervisor does, which is how a stuck call is noticed.
  std::optional<Feed::Outcome> outcome_while_watched(std::chrono::steady_clock::time_point until) {
    std::optional<Feed::Outcome> outcome;
    while (!(outcome = feed_->outcome()) && std::chrono::steady_clock::now() < until) {
      feed_->join_until(std::chrono::steady_clock::now() + 50ms);
    }
    return outcome;
  }
  /// Waits until that many frames have left the first encode.
  bool wait_out(std::uint64_t frames) {
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    while (stats_->ledger().encodes[0].out < frames) {
      if (std::chrono::steady_clock::now() > deadline || feed_->outcome()) return false;
      std::this_thread::yield();
    }
    return true;
  }

  void expect_settled() {
    const FeedStats::Ledger ledger = stats_->ledger();
    for (std::size_t i = 0; i < ledger.encodes.size(); ++i) {
      if (options_.encodes[i].copy_video) continue;
      const EncodeCounts& counts = ledger.encodes[i];
      std::uint64_t ended = counts.out;
      for (std::uint64_t dropped : counts.dropped) ended += dropped;
      EXPECT_EQ(counts.in, ledger.frames_in);
      EXPECT_EQ(counts.in, ended);
      EXPECT_EQ(counts.in_flight, 0);
    }
    for (const auto& jobs : stats_->ring_jobs) EXPECT_EQ(jobs, 0u);
  }
  std::uint64_t dropped(DropReason reason, std::size_t encode = 0) const {
    return stats_->ledger().encodes[encode].dropped[index_of(reason)];
  }

  /// Jobs that the stage has had in hand.
  std::uint64_t conversions() const {
    return stats_->steps[index_of(StageStep::kKernel)].snapshot().count;
  }

  testing::TempFolder folder_;
  std::shared_ptr<Device> device_ = make_cpu_device();
  FeedOptions options_;
  std::shared_ptr<FeedStats> stats_;
  std::unique_ptr<Feed> feed_;
};

TEST_F(FeedTest, EveryFrameOfAFileComesOut) {
  add_encode("live", "libx264", {{"preset", "ultrafast"}});
  add_output("file", "live", file("out.mp4"));
  const Feed::Outcome outcome = run();
  EXPECT_EQ(outcome.kind, Feed::Outcome::Kind::kEnded) << outcome.reason;
  EXPECT_EQ(stats_->ledger().frames_in, kClipFrames);
  EXPECT_EQ(stats_->ledger().encodes[0].out, kClipFrames);
  expect_settled();
  EXPECT_TRUE(std::filesystem::exists(file("out.mp4")));
}

TEST_F(FeedTest, SeveralEncodesShareOneInput) {
  // With frame threads this encoder copies pictures while FFmpeg counts references to them in a way
  // that the thread sanitizer cannot follow: it would take each byte for a race of its own, and
  // suppressing them all takes longer than a conversion may.
  const AvOptions alone{{"threads", "1"}};
  add_encode("bypass", "rawvideo", alone);
  EncodeOptions& full = add_encode("full", "rawvideo", alone);
  full.color.range = Range::kFull;
  add_encode("jpeg", "mjpeg");
  for (const char* name : {"bypass", "full", "jpeg"}) add_output(name, name, "null:");
  EXPECT_EQ(run().kind, Feed::Outcome::Kind::kEnded);
  for (const EncodeCounts& counts : stats_->ledger().encodes) EXPECT_EQ(counts.out, kClipFrames);
  expect_settled();
}

TEST_F(FeedTest, EncoderThatHoldsMoreFramesThanTheRingDoesNotDeadlock) {
  options_.ring = 2;
  add_encode("jpeg", "mjpeg", {{"threads", "16"}});
  add_output("null", "jpeg", "null:");
  EXPECT_EQ(run().kind, Feed::Outcome::Kind::kEnded);
  EXPECT_EQ(stats_->ledger().encodes[0].out, kClipFrames);
  expect_settled();
}

TEST_F(FeedTest, FramesThatNeedNoConversionBypassTheStage) {
  add_encode("live", "libx264", {{"preset", "ultrafast"}});
  add_output("null", "live", "null:");
  EXPECT_EQ(run().kind, Feed::Outcome::Kind::kEnded);
  EXPECT_EQ(stats_->ledger().encodes[0].out, kClipFrames);
  EXPECT_EQ(conversions(), 0u);
}

TEST_F(FeedTest, OneEncodeThatNeedsAConversionSendsFramesThroughTheStage) {
  add_encode("same", "libx264", {{"preset", "ultrafast"}});
  EncodeOptions& full = add_encode("full", "libx264", {{"preset", "ultrafast"}});
  full.color.range = Range::kFull;
  for (const char* name : {"same", "full"}) add_output(name, name, "null:");
  EXPECT_EQ(run().kind, Feed::Outcome::Kind::kEnded);
  for (const EncodeCounts& counts : stats_->ledger().encodes) EXPECT_EQ(counts.out, kClipFrames);
  EXPECT_EQ(conversions(), kClipFrames);
}

TEST_F(FeedTest, CopyAloneDecodesNothing) {
  add_copy("main");
  add_output("file", "main", file("copy.mkv"));
  EXPECT_EQ(run().kind, Feed::Outcome::Kind::kEnded);
  EXPECT_EQ(stats_->ledger().frames_in, 0u);
  EXPECT_EQ(stats_->status().decoder, "");
  EXPECT_TRUE(std::filesystem::exists(file("copy.mkv")));
}

TEST_F(FeedTest, DrainEncodesWhatIsInHandAndCompletesTheFile) {
  options_.input.loop = true;
  add_encode("live", "libx264", {{"preset", "veryfast"}});
  add_output("file", "live", file("out.mp4"));
  start();
  ASSERT_TRUE(wait_out(50));
  feed_->drain();
  EXPECT_EQ(wait().kind, Feed::Outcome::Kind::kStopped);
  expect_settled();
  EXPECT_TRUE(std::filesystem::exists(file("out.mp4")));
  EXPECT_EQ(dropped(DropReason::kStop), 0u);
}

TEST_F(FeedTest, CancelDropsWhatIsInHandWithItsReason) {
  options_.input.loop = true;
  add_encode("live", "libx264", {{"preset", "veryfast"}});
  add_output("null", "live", "null:");
  start();
  ASSERT_TRUE(wait_out(50));
  feed_->cancel(DropReason::kReload);
  EXPECT_EQ(wait().kind, Feed::Outcome::Kind::kStopped);
  expect_settled();
  EXPECT_GT(dropped(DropReason::kReload), 0u);
}

TEST_F(FeedTest, LiveFeedDropsFromAFullRingAndCountsIt) {
  options_.input.loop = true;
  options_.on_full = OnFull::kDrop;
  options_.ring = 1;
  add_encode("slow", "libx264", {{"preset", "veryslow"}});
  add_output("null", "slow", "null:");
  start();
  ASSERT_TRUE(wait_out(1));
  while (dropped(DropReason::kRingFull) == 0) std::this_thread::yield();
  feed_->cancel(DropReason::kStop);
  wait();
  expect_settled();
}

TEST_F(FeedTest, EndlessSourceEndsAfterItsDuration) {
  options_.input.loop = true;
  options_.input.duration = 6s;
  add_encode("live", "libx264", {{"preset", "ultrafast"}});
  add_output("null", "live", "null:");
  EXPECT_EQ(run().kind, Feed::Outcome::Kind::kEnded);
  EXPECT_EQ(stats_->ledger().encodes[0].out, 60u);
  expect_settled();
}

TEST_F(FeedTest, SourceThatCannotBeOpenedFailsAtOnceWithOnce) {
  options_.input.url = file("missing.mp4");
  add_encode("live", "libx264");
  const Feed::Outcome outcome = run();
  EXPECT_EQ(outcome.kind, Feed::Outcome::Kind::kFailed);
  EXPECT_EQ(outcome.fault, FeedFault::kSource);
  EXPECT_NE(outcome.reason.find("missing.mp4"), std::string::npos) << outcome.reason;
}

TEST_F(FeedTest, SourceThatCannotBeOpenedIsTriedAgain) {
  options_.once = false;
  options_.input.url = file("late.mp4");
  options_.input.reconnect = {10ms, 20ms};
  add_encode("live", "libx264", {{"preset", "ultrafast"}});
  start();
  while (stats_->reconnects[index_of(IoFault::kIo)] == 0) std::this_thread::yield();
  std::filesystem::copy(kClip, file("late.part"));
  std::filesystem::rename(file("late.part"), file("late.mp4"));
  EXPECT_EQ(wait().kind, Feed::Outcome::Kind::kEnded);
  EXPECT_EQ(stats_->ledger().encodes[0].out, kClipFrames);
}

TEST_F(FeedTest, RejectedEncoderOptionEndsTheFeedAndDropsItsFrame) {
  add_encode("live", "libx264", {{"presett", "fast"}});
  const Feed::Outcome outcome = run();
  EXPECT_EQ(outcome.fault, FeedFault::kConfiguration);
  EXPECT_NE(outcome.reason.find("presett"), std::string::npos);
  EXPECT_EQ(dropped(DropReason::kFeedFailed), 1u);
  expect_settled();
}

// What can be opened and holds nothing that can be decoded.
TEST_F(FeedTest, SourceWithoutAFrameFailsAndSaysSo) {
  testing::Bytes bytes = testing::read_file(kClip);
  const std::string tag = "mdat";
  const auto media = std::search(bytes.begin(), bytes.end(), tag.begin(), tag.end());
  ASSERT_NE(media, bytes.end());
  std::fill(media + 4, bytes.end(), std::uint8_t{0});
  options_.input.url = file("zeros.mp4");
  testing::write_file(options_.input.url, bytes);
  add_encode("live", "libx264");
  add_output("file", "live", file("out.mp4"));
  const Feed::Outcome outcome = run();
  EXPECT_EQ(outcome.kind, Feed::Outcome::Kind::kFailed);
  EXPECT_EQ(outcome.fault, FeedFault::kSource);
  EXPECT_NE(outcome.reason.find("without one frame"), std::string::npos) << outcome.reason;
  EXPECT_GT(stats_->decode_faults[index_of(DecodeFault::kCorrupt)], 0u);
  EXPECT_FALSE(std::filesystem::exists(file("out.mp4")));
  expect_settled();
}

TEST_F(FeedTest, RawFileShorterThanOneFrameFailsAndSaysSo) {
  testing::write_file(file("short.raw"), testing::Bytes(100));
  options_.once = false;  // a file's end is final: there is nothing to try again
  options_.input.url = file("short.raw");
  options_.input.format = "rawvideo";
  options_.input.raw = RawVideoOptions{.pixel_format = "bgra", .width = 64, .height = 48};
  add_encode("live", "libx264");
  const Feed::Outcome outcome = run();
  EXPECT_EQ(outcome.fault, FeedFault::kSource);
  EXPECT_NE(outcome.reason.find("without one frame"), std::string::npos) << outcome.reason;
  EXPECT_EQ(stats_->decode_faults[index_of(DecodeFault::kTruncated)], 1u);
}

// The second size is one that its encoder does not take: what is in hand then is lost with the
// feed.
TEST_F(FeedTest, FramesInHandWhenTheSourceFailsTheFeedAreCountedSo) {
  for (const auto& [name, size] : {std::pair{"a.ts", "352:288"}, std::pair{"b.ts", "320:240"}}) {
    testing::ffmpeg("-i " + kClip + " -vf scale=" + size + " -frames:v 20 -c:v libx264 -bf 0 '" +
                    file(name) + "'");
  }
  testing::Bytes both = testing::read_file(file("a.ts"));
  const testing::Bytes rest = testing::read_file(file("b.ts"));
  both.insert(both.end(), rest.begin(), rest.end());
  testing::write_file(file("both.ts"), both);
  options_.input.url = file("both.ts");
  add_encode("narrow", "h261");
  add_encode("any", "libx264", {{"preset", "ultrafast"}, {"rc-lookahead", "40"}});
  for (const char* name : {"narrow", "any"}) add_output(name, name, "null:");
  const Feed::Outcome outcome = run();
  EXPECT_EQ(outcome.kind, Feed::Outcome::Kind::kFailed);
  EXPECT_EQ(outcome.fault, FeedFault::kConfiguration) << outcome.reason;
  EXPECT_GE(dropped(DropReason::kFeedFailed, 0), 1u);
  EXPECT_GE(dropped(DropReason::kFeedFailed, 1), 1u);
  for (const EncodeCounts& counts : stats_->ledger().encodes) {
    EXPECT_EQ(counts.in, counts.out + counts.dropped[index_of(DropReason::kFeedFailed)]);
  }
  expect_settled();
}

// FFmpeg opens a FIFO by itself inside "concat:", and waits for its writer whatever the deadline.
TEST_F(FeedTest, SourceStuckInACallThatIgnoresItsDeadlineIsAbandoned) {
  const std::string fifo = file("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  options_.once = false;
  options_.input.url = "concat:" + fifo;
  options_.input.timeout = 100ms;
  add_encode("live", "libx264");
  add_output("null", "live", "null:");
  start();
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  const auto outcome = outcome_while_watched(deadline);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->kind, Feed::Outcome::Kind::kFailed);
  EXPECT_EQ(outcome->fault, FeedFault::kInternal);
  EXPECT_NE(outcome->reason.find("input.timeout"), std::string::npos) << outcome->reason;
  const std::uint64_t abandoned = threads_abandoned();
  feed_.reset();
  EXPECT_EQ(threads_abandoned(), abandoned + 1);
  EXPECT_EQ(stats_->abandoned_runs, 1);
  // Let the thread go, and with it the run that it keeps alive.
  const int writer = ::open(fifo.c_str(), O_WRONLY);
  ::close(writer);
  while (stats_.use_count() > 1 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  EXPECT_EQ(stats_.use_count(), 1);
  EXPECT_EQ(stats_->abandoned_runs, 0);
  expect_settled();
}

// FFmpeg opens a playlist's segments by itself, and a FIFO's open() waits for its reader, as a call
// on a dead file server waits for that.
TEST_F(FeedTest, OutputStuckInACallThatIgnoresItsDeadlineIsAbandoned) {
  const std::string fifo = file("part0.ts");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  options_.once = false;
  options_.input.loop = true;  // a first segment ends, and is opened then
  add_encode("live", "libx264", {{"preset", "ultrafast"}, {"g", "10"}});
  add_output("hls", "live", file("list.m3u8"));
  options_.outputs.back().options = {{"hls_segment_filename", file("part%d.ts"), false},
                                     {"hls_flags", "-temp_file", false},
                                     {"hls_time", "0.2", false}};
  options_.outputs.back().timeout = 100ms;
  start();
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  const auto outcome = outcome_while_watched(deadline);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->kind, Feed::Outcome::Kind::kFailed);
  EXPECT_EQ(outcome->fault, FeedFault::kInternal);
  EXPECT_NE(outcome->reason.find("output hls is stuck"), std::string::npos) << outcome->reason;
  EXPECT_EQ(stats_->outputs().front().state(), std::pair(FeedState::kFailed, outcome->reason));
  EXPECT_FALSE(stats_->outputs().front().up);
  const std::uint64_t abandoned = threads_abandoned();
  feed_.reset();
  EXPECT_EQ(threads_abandoned(), abandoned + 1);
  // Let the thread go, and with it the run that it keeps alive. It leaves the playlist alone.
  const int reader = ::open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  while (stats_.use_count() > 1 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  ::close(reader);
  EXPECT_EQ(stats_.use_count(), 1);
  EXPECT_FALSE(std::filesystem::exists(file("list.m3u8")));
  expect_settled();
}

/// The CPU in the place of a GPU.
class GpuInName : public DeviceWrapper {
 public:
  GpuInName() : DeviceWrapper(make_cpu_device()) {}
  bool has_copy_engines() const override { return true; }
  bool lost() const override { return lost_; }
  void lose(const std::string& /*reason*/) override { lost_ = true; }

 private:
  std::atomic<bool> lost_{false};
};

/// A feed of raw frames from a FIFO, and a GPU that may hold up whoever wants memory.
class HeldMemoryTest : public FeedTest {
 protected:
  HeldMemoryTest() {
    ::mkfifo(file("fifo").c_str(), 0600);
    options_.once = false;
    options_.input.url = file("fifo");
    options_.input.timeout = 100ms;
    options_.input.raw = {.pixel_format = "bgra", .width = 64, .height = 48};
    add_encode("live", "libx264");
    device_ = std::make_shared<GpuInName>();
  }
  void expect_given_up(FeedFault fault, const std::string& reason) {
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    const auto outcome = outcome_while_watched(deadline);
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->fault, fault);
    EXPECT_NE(outcome->reason.find(reason), std::string::npos) << outcome->reason;
    const std::uint64_t abandoned = threads_abandoned();
    feed_.reset();
    EXPECT_EQ(threads_abandoned(), abandoned + 1);
    registrar_.release();
    while (stats_.use_count() > 1 && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::yield();
    }
    EXPECT_EQ(stats_.use_count(), 1);
    expect_settled();
  }

  testing::HeldRegistrar registrar_;
};

TEST_F(HeldMemoryTest, ASourceThatWaitsForItIsAbandoned) {
  registrar_.hold();
  start();
  expect_given_up(FeedFault::kInternal, "input.timeout");
}

TEST_F(HeldMemoryTest, AFrameThatWaitsForItsTargetIsFoundToBeStuckAndTheGpuLost) {
  options_.input.timeout = 1h;
  const std::size_t before = host_buffer_bytes();
  start();
  const int writer = ::open(file("fifo").c_str(), O_WRONLY | O_CLOEXEC);
  while (host_buffer_bytes() == before) std::this_thread::yield();
  registrar_.hold();
  const std::string frame(64 * 48 * 4, '\x40');
  EXPECT_EQ(::write(writer, frame.data(), frame.size()), static_cast<ssize_t>(frame.size()));
  expect_given_up(FeedFault::kDevice, "does not come to an end");
  EXPECT_TRUE(device_->lost());  // other feeds leave it at once
  ::close(writer);
}

TEST_F(FeedTest, DestroyingARunningFeedEndsIt) {
  options_.input.loop = true;
  add_encode("live", "libx264", {{"preset", "veryfast"}});
  add_output("null", "live", "null:");
  start();
  ASSERT_TRUE(wait_out(10));
  const std::uint64_t abandoned = threads_abandoned();
  feed_.reset();
  EXPECT_EQ(threads_abandoned(), abandoned);
  EXPECT_EQ(stats_->abandoned_runs, 0);
  expect_settled();
}

}  // namespace
}  // namespace framelane
