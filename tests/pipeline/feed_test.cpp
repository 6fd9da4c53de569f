#include "pipeline/feed.hpp"

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <condition_variable>

#include "pipeline/options.hpp"
#include "tests/pipeline/media_files.hpp"

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
    feed_ = Feed::start(options_, stats_, make_cpu_device(), [] {});
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

  testing::TempFolder folder_;
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
  add_encode("bypass", "rawvideo");
  EncodeOptions& full = add_encode("full", "rawvideo");
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
  // The decoder's own frames are not in yet; of those in hand only the one waiting for a place in
  // the ring may be dropped.
  EXPECT_LE(dropped(DropReason::kStop), 1u);
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

TEST_F(FeedTest, DestroyingARunningFeedEndsIt) {
  options_.input.loop = true;
  add_encode("live", "libx264", {{"preset", "veryfast"}});
  add_output("null", "live", "null:");
  start();
  ASSERT_TRUE(wait_out(10));
  const std::uint64_t abandoned = threads_abandoned();
  feed_.reset();
  EXPECT_EQ(threads_abandoned(), abandoned);
  expect_settled();
}

}  // namespace
}  // namespace framelane
