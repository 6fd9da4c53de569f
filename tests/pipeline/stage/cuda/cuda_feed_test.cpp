// Whole feeds over a GPU: every frame is accounted for, whatever becomes of the GPU.
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <map>
#include <numeric>
#include <regex>

#include "pipeline/feed/feed.hpp"
#include "tests/pipeline/base/log_capture.hpp"
#include "tests/pipeline/source/media_files.hpp"
#include "tests/pipeline/stage/cuda/stage_fixture.hpp"
#include "tests/pipeline/stage/device_wrapper.hpp"

namespace framelane::testing {
namespace {

constexpr std::uint64_t kClipFrames = 42;

/// A clip whose frames a GPU that is emulated, under a sanitizer on a busy machine, ends in time.
const std::string& small_clip() {
  static const TempFolder folder;
  static const std::string path = [] {
    ffmpeg("-i '" + clip("street_h264.mp4") + "' -vf scale=160:120 -c:v libx264 '" +
           (folder / "small.mp4") + "'");
    return folder / "small.mp4";
  }();
  return path;
}

/// Every frame has come out of every encode, and nothing is left over.
void expect_all_out(const FeedStats& stats, std::uint64_t frames) {
  const FeedStats::Ledger ledger = stats.ledger();
  EXPECT_EQ(ledger.frames_in, frames);
  for (const EncodeCounts& counts : ledger.encodes) {
    EXPECT_EQ(counts.in, frames);
    EXPECT_EQ(counts.out, frames);
    EXPECT_EQ(counts.in_flight, 0);
    for (const std::uint64_t dropped : counts.dropped) EXPECT_EQ(dropped, 0u);
  }
  for (const auto& jobs : stats.ring_jobs) EXPECT_EQ(jobs, 0u);
}

/// A GPU whose stages leave it, as far as their decoders are concerned, after so many packets.
class LeavingDevice : public DeviceWrapper {
 public:
  LeavingDevice(std::shared_ptr<Device> device, int packets)
      : DeviceWrapper(std::move(device)), packets_(packets) {}
  std::unique_ptr<Stage> make_stage(FeedStats& stats, std::optional<int> slices) override {
    return std::make_unique<LeavingStage>(device_->make_stage(stats, slices), packets_);
  }

 private:
  const int packets_;
};

template <typename Fixture>
class CudaFeedFixture : public Fixture {
 protected:
  void SetUp() override {
    spdlog::set_level(spdlog::level::off);
    av_log_set_level(AV_LOG_FATAL);
    Fixture::SetUp();
    if (this->IsSkipped() || this->HasFatalFailure()) return;
    options_.name = "gate";
    options_.once = true;
    options_.input.url = small_clip();
    options_.input.decoder = InputOptions::DecoderKind::kSoftware;
    add_encode("full", Range::kFull);
    add_encode("nv12", {}).format = PixelFormat::kNv12;
    add_encode("bypass", {});
    if (this->gpu() > 0) stand_in::set_device_count(this->gpu() + 1);
    device_ = CudaDevice::open(this->gpu(), cpu_);
  }
  virtual int gpu() const { return 0; }
  void TearDown() override {
    feed_.reset();
    device_.reset();
    if (this->IsSkipped()) return;
    if (stand_in::present()) {
      EXPECT_EQ(stand_in::spinning_waits(), 0) << "threads that did not sleep";
    }
    Fixture::TearDown();
  }

  EncodeOptions& add_encode(const std::string& name, std::optional<Range> range) {
    EncodeOptions encode;
    encode.name = name;
    encode.codecs.push_back({"libx264", {{"preset", "ultrafast"}}});
    encode.color.range = range;
    options_.encodes.push_back(std::move(encode));
    OutputOptions output;
    output.name = output.from = name;
    output.url = "null:";
    options_.outputs.push_back(std::move(output));
    return options_.encodes.back();
  }
  void start() {
    stats_ = std::make_shared<FeedStats>(
        options_.name,
        std::vector<FeedStats::EncodeSpec>{{"full", false}, {"nv12", false}, {"bypass", false}},
        std::vector<std::string>{"full", "nv12", "bypass"}, options_.lanes);
    feed_ = Feed::start(options_, stats_, device_, [] {});
  }
  Feed::Outcome wait() {
    EXPECT_TRUE(feed_->join_until(soon()));
    return feed_->outcome().value_or(
        Feed::Outcome{Feed::Outcome::Kind::kFailed, FeedFault::kInternal, "it did not end"});
  }
  /// A GPU that has hung over the feed's end lets go.
  void let_go() {
    stand_in::release();
    EXPECT_TRUE(comes([&] { return device_->context()->abandoned_jobs == 0; }));
    stand_in::forget_registrations();  // of what the feed has freed meanwhile
  }
  /// Another feed's work that hangs, out of the way of this one's jobs. (Letting go of memory waits
  /// for all work, as on a GPU.)
  void hang_beside() {
    device_->context()->make_current();
    stand_in::hold(device_->context()->decode_stream().get());
    CudaEvent(CudaEvent::Kind::kOrder).record(device_->context()->decode_stream());
  }
  /// Asks again and again, as the supervisor does, which is how a stuck call is noticed.
  Feed::Outcome outcome_while_watched() {
    std::optional<Feed::Outcome> outcome;
    EXPECT_TRUE(comes([&] { return (outcome = feed_->outcome()).has_value(); }));
    return outcome.value_or(Feed::Outcome{Feed::Outcome::Kind::kEnded, {}, "it did not end"});
  }
  /// The feed is given up within its time, and what was given up goes when the GPU does not hang
  /// any more.
  void expect_given_up(const std::function<void()>& mend) {
    const std::uint64_t abandoned = threads_abandoned();
    auto gone = std::async(std::launch::async, [this] { feed_.reset(); });
    EXPECT_EQ(gone.wait_for(20s), std::future_status::ready);
    EXPECT_GT(threads_abandoned(), abandoned);
    mend();
    gone.wait();
    EXPECT_TRUE(comes([this] { return stats_.use_count() == 1; }));
    EXPECT_EQ(stats_->abandoned_runs, 0);
  }
  void expect_settled(std::uint64_t frames) { expect_all_out(*stats_, frames); }

  const std::shared_ptr<Device> cpu_ = std::make_shared<CpuDevice>(2);
  FeedOptions options_;
  std::shared_ptr<FeedStats> stats_;
  std::shared_ptr<CudaDevice> device_;
  std::unique_ptr<Feed> feed_;
};

/// What a real GPU does to a feed that is on it. Each in a process of its own: one whose GPU is
/// lost has lost it for good.
class RealGpuLossTest : public CudaFeedFixture<RealGpuTest> {
 protected:
  static void SetUpTestSuite() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  /// Whether the feed, in the middle of which `mishap` happens, goes on on the CPU without a frame
  /// missing; ends the process as the daemon does.
  [[noreturn]] void live_through(const std::function<void()>& mishap) {
    options_.input.loop = true;
    options_.input.duration = 120s;  // longer than it takes to queue a mishap
    start();
    const bool on_gpu = comes([&] { return stats_->ledger().encodes[0].out >= 10; });
    mishap();
    wait();
    expect_settled(1200);
    EXPECT_TRUE(on_gpu);
    EXPECT_TRUE(device_->lost());
    EXPECT_EQ(stats_->status().device, "cpu");
    feed_.reset();
    device_.reset();
    std::exit(HasFailure() ? 1 : 0);
  }
};

TEST_F(RealGpuLossTest, AKernelThatFaultsMovesTheFeedToTheCpu) {
  const auto fault = [this] {
    device_->context()->make_current();
    const Conversion conversion = conversion_of(PixelFormat::kBgra, PixelFormat::kNv12, 64, 64);
    std::uint8_t* const nowhere = reinterpret_cast<std::uint8_t*>(256);
    const auto at_nowhere = [&](PixelFormat format) {
      return ImageView{format, 64, 64, {{{nowhere, 256}, {nowhere, 256}}}};
    };
    EXPECT_EQ(CudaConverter::make(conversion)
                  ->enqueue(as_const(at_nowhere(conversion.source)), at_nowhere(conversion.target),
                            0, 64, device_->context()->kernel_stream().get()),
              cudaSuccess);
  };
  EXPECT_EXIT(live_through(fault), ::testing::ExitedWithCode(0), "");
}

TEST_F(RealGpuLossTest, KernelsThatDoNotComeToAnEndMoveTheFeedToTheCpu) {
  const auto hang = [this] {
    const auto gpu = device_->context();
    gpu->make_current();
    Conversion conversion = conversion_of(PixelFormat::kI420, PixelFormat::kNv12, 16384, 16384);
    conversion.source_color = {.matrix = Matrix::kBt601};  // the slow way
    const DeviceImage from(*gpu, conversion.source, conversion.width, conversion.height);
    const DeviceImage to(*gpu, conversion.target, conversion.width, conversion.height);
    gpu->memory_stream().synchronize();
    const auto converter = CudaConverter::make(conversion);
    // Some five seconds on the fastest GPU there is, and not more than a stream takes.
    for (int i = 0; i < 900; ++i) {
      EXPECT_EQ(converter->enqueue(as_const(from.image), to.image, 0, conversion.height,
                                   gpu->kernel_stream().get()),
                cudaSuccess);
    }
    // The images go in the order of the memory's stream.
    const CudaEvent end(CudaEvent::Kind::kOrder);
    end.record(gpu->kernel_stream());
    gpu->memory_stream().wait(end.get());
  };
  EXPECT_EXIT(live_through(hang), ::testing::ExitedWithCode(0), "");
}

using CudaFeedTest = CudaFeedFixture<CudaTest>;
using CudaFeedLossTest = CudaFeedFixture<StandInTest>;

TEST_F(CudaFeedTest, EveryFrameOfAFileComesOut) {
  start();
  const Feed::Outcome outcome = wait();
  EXPECT_EQ(outcome.kind, Feed::Outcome::Kind::kEnded) << outcome.reason;
  expect_settled(kClipFrames);
  EXPECT_EQ(stats_->steps[index_of(StageStep::kH2d)].snapshot().count, kClipFrames);
  EXPECT_EQ(stats_->status().device, "cuda:0");
  EXPECT_FALSE(device_->lost());
  feed_.reset();
  EXPECT_TRUE(comes([&] { return device_->memory_bytes() == 0; }));
}

/// One frame at a time, so that none finds another upload before it.
TEST_F(CudaFeedLossTest, TheSlicesOfTheConfigurationReachTheGpu) {
  options_.ring = 1;
  const auto copies_with = [&](int slices) {
    const int before = copies();
    options_.slices = slices;
    start();
    wait();
    feed_.reset();
    return copies() - before;
  };
  const int whole = copies_with(1);
  EXPECT_GT(copies_with(3), 2 * whole);
}

TEST_F(CudaFeedTest, FeedsOnOneDeviceDoNotDisturbEachOther) {
  options_.slices = 3;
  start();
  auto other_stats = std::make_shared<FeedStats>(
      "yard",
      std::vector<FeedStats::EncodeSpec>{{"full", false}, {"nv12", false}, {"bypass", false}},
      std::vector<std::string>{"full", "nv12", "bypass"}, options_.lanes);
  FeedOptions other_options = options_;
  other_options.name = "yard";
  const std::unique_ptr<Feed> other = Feed::start(other_options, other_stats, device_, [] {});
  wait();
  EXPECT_TRUE(other->join_until(soon()));
  expect_settled(kClipFrames);
  std::swap(stats_, other_stats);
  expect_settled(kClipFrames);
}

/// The stand-in has no driver behind it that FFmpeg could decode with.
TEST_F(CudaFeedLossTest, AutoDecodesInSoftwareWhereTheGpuDoesNotAndSaysWhyOnce) {
  options_.input.decoder = InputOptions::DecoderKind::kAuto;
  const LogCapture log;
  start();
  EXPECT_EQ(wait().kind, Feed::Outcome::Kind::kEnded);
  expect_settled(kClipFrames);
  EXPECT_EQ(stats_->status().decoder, "h264");
  EXPECT_EQ(stats_->status().decoder_reason, "the driver shows no context of cuda:0");
  EXPECT_EQ(stats_->status().device, "cuda:0");
  feed_ = Feed::start(options_, stats_, device_, [] {});
  EXPECT_EQ(wait().kind, Feed::Outcome::Kind::kEnded);
  feed_.reset();
  EXPECT_EQ(log.count("decoding in software, because the driver shows no context of cuda:0"), 1u);
}

TEST_F(CudaFeedLossTest, NvdecFailsTheFeedWhereTheGpuDoesNotDecode) {
  options_.input.decoder = InputOptions::DecoderKind::kNvdec;
  start();
  const Feed::Outcome outcome = wait();
  EXPECT_EQ(outcome.kind, Feed::Outcome::Kind::kFailed);
  EXPECT_EQ(outcome.fault, FeedFault::kConfiguration);
  EXPECT_EQ(outcome.reason,
            "input.decoder is nvdec, but the driver shows no context of cuda:0; use auto to have "
            "it decoded in software then");
  expect_settled(0);
}

/// Over the second GPU of two.
class SecondGpuTest : public CudaFeedLossTest {
  int gpu() const override { return 1; }
};

TEST_F(SecondGpuTest, EveryCallIsMadeForTheDeviceWhoseStreamsAndEventsItTakes) {
  start();
  EXPECT_EQ(wait().kind, Feed::Outcome::Kind::kEnded);
  expect_settled(kClipFrames);
  EXPECT_EQ(stats_->status().device, "cuda:1");
  feed_.reset();
  device_.reset();
  EXPECT_EQ(stand_in::live(), stand_in::Live{});
  EXPECT_EQ(stand_in::misplaced_calls(), 0);
}

TEST_F(SecondGpuTest, AHungOneIsAskedAndLeftInTheSameWay) {
  options_.input.loop = true;
  options_.input.duration = 12s;
  start();
  ASSERT_TRUE(comes([&] { return stats_->ledger().encodes[0].out >= 10; }));
  stand_in::hold();
  wait();
  EXPECT_TRUE(device_->lost());
  expect_settled(120);
  let_go();
  feed_.reset();
  device_.reset();
  EXPECT_EQ(stand_in::misplaced_calls(), 0);
}

TEST_F(CudaFeedLossTest, AFeedWhoseGpuIsLostGoesOnOnTheCpu) {
  options_.input.loop = true;
  options_.input.duration = 12s;  // 120 frames
  const TempFolder folder;
  for (OutputOptions& output : options_.outputs) output.url = folder / (output.name + ".mp4");
  start();
  ASSERT_TRUE(comes([&] { return stats_->ledger().encodes[0].out >= 30; }));
  stand_in::lose_device(cudaErrorIllegalAddress);
  const Feed::Outcome outcome = wait();
  EXPECT_EQ(outcome.kind, Feed::Outcome::Kind::kEnded) << outcome.reason;
  expect_settled(120);
  EXPECT_EQ(stats_->status().device, "cpu");
  EXPECT_TRUE(device_->lost());
  // The same encoders, which make a keyframe every 250 frames, and the same files.
  for (const OutputOptions& output : options_.outputs) {
    const std::vector<std::int64_t> keys = probe(output.url, "frame=key_frame");
    EXPECT_EQ(keys.size(), 120u) << output.name;
    EXPECT_EQ(std::ranges::count(keys, 1), 1) << output.name;
    EXPECT_FALSE(std::filesystem::exists(folder / (output.name + ".2.mp4")));
  }
}

TEST_F(CudaFeedLossTest, AFeedWithoutRoomIsRefusedWithTheAmounts) {
  stand_in::set_memory(1000);
  start();
  const Feed::Outcome outcome = wait();
  EXPECT_EQ(outcome.fault, FeedFault::kMemory);
  EXPECT_NE(outcome.reason.find("are needed for 3 lanes"), std::string::npos) << outcome.reason;
  EXPECT_FALSE(device_->lost());
}

/// FFmpeg's decoder asks for it, and knows no more than that there is none.
TEST_F(CudaFeedLossTest, AFeedWhoseFramesCannotBeLockedIsRefusedWithTheAmounts) {
  stand_in::fail_nth_call("cudaHostRegister", 1, cudaErrorMemoryAllocation);
  start();
  const Feed::Outcome outcome = wait();
  EXPECT_EQ(outcome.kind, Feed::Outcome::Kind::kFailed);
  EXPECT_EQ(outcome.fault, FeedFault::kMemory);
  EXPECT_TRUE(std::regex_search(
      outcome.reason, std::regex("^[0-9]+ MiB more cannot be locked for cuda:0, beside [0-9]+ MiB "
                                 "that are and with [0-9]+ MiB available: cudaHostRegister: ")))
      << outcome.reason;
  EXPECT_FALSE(device_->lost());
}

TEST_F(CudaFeedLossTest, CancelWaitsForWhatTheGpuHolds) {
  options_.input.loop = true;
  start();
  ASSERT_TRUE(comes([&] { return stats_->ledger().encodes[0].out >= 10; }));
  feed_->cancel(DropReason::kStop);
  EXPECT_EQ(wait().kind, Feed::Outcome::Kind::kStopped);
  feed_.reset();
  const FeedStats::Ledger ledger = stats_->ledger();
  for (const EncodeCounts& counts : ledger.encodes) {
    EXPECT_EQ(counts.in, counts.out + counts.dropped[index_of(DropReason::kStop)]);
  }
  EXPECT_FALSE(device_->lost());
}

TEST_F(CudaFeedLossTest, AFeedWhoseMemoryIsNotThereYetCanBeStopped) {
  stand_in::hold(stand_in::streams().at(2));
  options_.input.loop = true;
  start();
  ASSERT_TRUE(comes([&] { return stats_->ring_jobs[index_of(RingState::kConverting)] > 0; }));
  feed_->cancel(DropReason::kStop);
  EXPECT_TRUE(feed_->join_until(std::chrono::steady_clock::now() + 8s));
  let_go();
}

TEST_F(CudaFeedLossTest, CancelOverAGpuThatHangsAbandonsNoThread) {
  options_.input.loop = true;
  start();
  ASSERT_TRUE(comes([&] { return stats_->ledger().encodes[0].out >= 10; }));
  stand_in::hold();
  ASSERT_TRUE(comes([&] { return stats_->ring_jobs[index_of(RingState::kConverting)] > 0; }));
  feed_->cancel(DropReason::kStop);
  // Found out in little more than two seconds; who looked only every ten would not make it.
  EXPECT_TRUE(feed_->join_until(std::chrono::steady_clock::now() + 8s));
  EXPECT_EQ(feed_->outcome().value().kind, Feed::Outcome::Kind::kStopped);
  EXPECT_TRUE(device_->lost());
  for (const EncodeCounts& counts : stats_->ledger().encodes) {
    EXPECT_EQ(counts.in, counts.out + counts.dropped[index_of(DropReason::kStop)]);
  }
  let_go();
  const std::uint64_t abandoned = threads_abandoned();
  feed_.reset();
  EXPECT_EQ(threads_abandoned(), abandoned);
}

TEST_F(CudaFeedLossTest, WhoDestroysAFeedDoesNotWaitForAGpuThatHangs) {
  hang_beside();
  options_.input.loop = true;
  start();
  ASSERT_TRUE(comes([&] { return stats_->ledger().encodes[0].out >= 10; }));
  expect_given_up([] { stand_in::release(); });
}

TEST_F(CudaFeedLossTest, AFeedWhoseMemoryAHungGpuKeepsHasEndedAllTheSame) {
  hang_beside();
  start();
  ASSERT_TRUE(comes([&] { return stats_->ledger().encodes[2].out == kClipFrames; }));
  device_->context()->lose("another feed's job does not come to an end");  // long before 10 s
  EXPECT_EQ(outcome_while_watched().kind, Feed::Outcome::Kind::kEnded);
  expect_settled(kClipFrames);
  expect_given_up([] { stand_in::release(); });
}

TEST_F(CudaFeedLossTest, AFeedThatStartsOnAGpuThatHangsIsGivenUp) {
  const int records = stand_in::calls("cudaEventRecord");
  std::unique_lock gate(device_->context()->copy_gate);  // another feed's call does not return
  start();
  ASSERT_TRUE(comes([&] { return stand_in::calls("cudaEventRecord") > records; }));
  device_->context()->lose("another feed's job does not come to an end");  // long before a minute
  const Feed::Outcome outcome = outcome_while_watched();
  EXPECT_EQ(outcome.kind, Feed::Outcome::Kind::kFailed);
  EXPECT_EQ(outcome.fault, FeedFault::kDevice);
  EXPECT_EQ(outcome.reason.find("a call on cuda:0 does not come to an end"), 0u) << outcome.reason;
  expect_given_up([&gate] { gate.unlock(); });
}

using NvdecFeedTest = CudaFeedFixture<RealGpuTest>;

TEST_F(NvdecFeedTest, EveryFrameOfAFileComesOutWithoutAnUpload) {
  options_.input.decoder = InputOptions::DecoderKind::kNvdec;
  options_.input.loop = true;
  options_.input.duration = 12s;  // 120 frames
  start();
  const Feed::Outcome outcome = wait();
  EXPECT_EQ(outcome.kind, Feed::Outcome::Kind::kEnded) << outcome.reason;
  expect_settled(120);
  EXPECT_EQ(stats_->status().decoder, "h264_nvdec");
  EXPECT_EQ(stats_->status().device, "cuda:0");
  EXPECT_EQ(stats_->steps[index_of(StageStep::kH2d)].snapshot().count, 0u);
  EXPECT_EQ(stats_->steps[index_of(StageStep::kD2h)].snapshot().count, 120u);
  for (const auto& copies : stats_->host_copies) EXPECT_EQ(copies, 0u);
  EXPECT_FALSE(device_->lost());
}

TEST_F(NvdecFeedTest, ADecoderThatLeavesTheGpuIsNoReasonForANewFile) {
  const TempFolder folder;
  // 120 frames in groups of 12: some are lost between two keyframes.
  const std::string path = folder / "twelves.mp4";
  ffmpeg("-stream_loop 2 -i '" + small_clip() + "' -r 10 -c:v libx264 -g 12 -bf 0 '" + path + "'");
  options_.input.url = path;
  options_.input.decoder = InputOptions::DecoderKind::kAuto;
  for (OutputOptions& output : options_.outputs) output.url = folder / (output.name + ".mp4");
  const auto leaving = std::make_shared<LeavingDevice>(device_, 40);
  stats_ = std::make_shared<FeedStats>(
      options_.name,
      std::vector<FeedStats::EncodeSpec>{{"full", false}, {"nv12", false}, {"bypass", false}},
      std::vector<std::string>{"full", "nv12", "bypass"}, options_.lanes);
  feed_ = Feed::start(options_, stats_, leaving, [] {});
  const Feed::Outcome outcome = wait();
  EXPECT_EQ(outcome.kind, Feed::Outcome::Kind::kEnded) << outcome.reason;
  EXPECT_EQ(stats_->status().decoder, "h264");
  expect_settled(stats_->ledger().frames_in);
  EXPECT_GT(stats_->steps[index_of(StageStep::kH2d)].snapshot().count, 0u);
  for (const OutputOptions& output : options_.outputs) {
    EXPECT_TRUE(std::filesystem::exists(folder / (output.name + ".mp4")));
    EXPECT_FALSE(std::filesystem::exists(folder / (output.name + ".2.mp4")));
  }
  feed_.reset();
}

/// With one frame at a time, each sliced, and with a ring in which uploads find others before them.
class CudaFeedSweepTest : public StandInTest, public ::testing::WithParamInterface<int> {
 protected:
  static constexpr int kWidth = 32;
  static constexpr int kHeight = 34;           // the least that is cut in two
  static constexpr std::uint64_t kFrames = 5;  // more than there are lanes

  void SetUp() override {
    spdlog::set_level(spdlog::level::off);
    av_log_set_level(AV_LOG_FATAL);
    StandInTest::SetUp();
    write_file(folder_ / "in.bgra", Bytes(kWidth * kHeight * 4 * kFrames, 99));
    options_.name = "gate";
    options_.once = true;
    options_.ring = GetParam();
    options_.lanes = 2;
    options_.slices = 2;
    options_.input.url = folder_ / "in.bgra";
    options_.input.format = "rawvideo";
    options_.input.raw = {.pixel_format = "bgra", .width = kWidth, .height = kHeight};
    for (const PixelFormat format : {PixelFormat::kNv12, PixelFormat::kI444}) {
      EncodeOptions encode;
      encode.name = info(format).name;
      encode.codecs.push_back({"rawvideo"});
      encode.format = format;
      OutputOptions output;
      output.name = output.from = encode.name;
      output.url = "null:";
      options_.encodes.push_back(std::move(encode));
      options_.outputs.push_back(std::move(output));
    }
  }

  enum class Life { kNotOpened, kFailed, kMoved, kEnded };
  /// From opening the GPU to closing it. The feed has ended with every frame out, on the GPU or
  /// moved to the CPU, or failed with a reason and every frame accounted for.
  Life whole_life() const {
    std::vector<FeedStats::EncodeSpec> encodes;
    std::vector<std::string> outputs;
    for (const EncodeOptions& encode : options_.encodes) {
      encodes.push_back({encode.name, false});
      outputs.push_back(encode.name);
    }
    const auto stats = std::make_shared<FeedStats>(options_.name, encodes, outputs, options_.lanes);
    std::shared_ptr<CudaDevice> device;
    try {
      device = CudaDevice::open(0, cpu_);
    } catch (const CudaError&) {
      return Life::kNotOpened;
    }
    std::unique_ptr<Feed> feed;
    try {
      feed = Feed::start(options_, stats, device, [] {});
    } catch (const FeedError& error) {
      EXPECT_EQ(error.code(), FeedFault::kMemory);
      return Life::kFailed;
    }
    EXPECT_TRUE(feed->join_until(soon()));
    const Feed::Outcome outcome = feed->outcome().value_or(
        Feed::Outcome{Feed::Outcome::Kind::kStopped, {}, "it did not end"});
    if (outcome.kind == Feed::Outcome::Kind::kEnded) {
      expect_all_out(*stats, kFrames);
      return stats->status().device == "cpu" ? Life::kMoved : Life::kEnded;
    }
    EXPECT_EQ(outcome.kind, Feed::Outcome::Kind::kFailed) << outcome.reason;
    EXPECT_NE(outcome.reason, "");
    for (const EncodeCounts& counts : stats->ledger().encodes) {
      EXPECT_EQ(counts.in,
                std::accumulate(counts.dropped.begin(), counts.dropped.end(), counts.out));
      EXPECT_EQ(counts.in_flight, 0);
    }
    return Life::kFailed;
  }

  const TempFolder folder_;
  const std::shared_ptr<Device> cpu_ = std::make_shared<CpuDevice>(2);
  FeedOptions options_;
};

INSTANTIATE_TEST_SUITE_P(Rings, CudaFeedSweepTest, ::testing::Values(1, 8),
                         [](const auto& ring) { return "Of" + std::to_string(ring.param); });

TEST_P(CudaFeedSweepTest, TheGpuMayBeLostAtAnyCall) {
  ASSERT_EQ(whole_life(), Life::kEnded);
  if (GetParam() == 1) {
    // Two conversions of each frame.
    EXPECT_GT(stand_in::calls("cudaLaunchKernel"), 2 * static_cast<int>(kFrames)) << "not sliced";
  }
  int calls = 0;
  for (const std::string& function : stand_in::called_functions()) {
    calls += stand_in::calls(function);
  }
  EXPECT_EQ(stand_in::live(), stand_in::Live{});
  int opened = 0;
  for (int n = 1; n <= calls && !HasFailure(); ++n) {
    SCOPED_TRACE("call " + std::to_string(n) + " of " + std::to_string(calls));
    stand_in::reset();
    stand_in::lose_device_at_call(n);
    const Life life = whole_life();
    EXPECT_NE(life, Life::kFailed);
    opened += static_cast<int>(life != Life::kNotOpened);
    EXPECT_EQ(stand_in::live(), stand_in::Live{});
    EXPECT_EQ(stand_in::overruns(), 0);
    EXPECT_EQ(stand_in::spinning_waits(), 0);
  }
  EXPECT_GT(opened, calls / 2);
}

TEST_P(CudaFeedSweepTest, AnyCallMayFailOnce) {
  ASSERT_EQ(whole_life(), Life::kEnded);
  std::map<std::string, int> calls;
  for (const std::string& function : stand_in::called_functions()) {
    calls[function] = stand_in::calls(function);
  }
  std::map<Life, int> lives;
  for (const auto& [function, count] : calls) {
    const bool allocates = function == "cudaMallocAsync" || function == "cudaHostRegister" ||
                           function == "cudaFuncGetAttributes" || function.ends_with("WithFlags");
    for (const cudaError_t error : {cudaErrorUnknown, cudaErrorMemoryAllocation}) {
      if (error == cudaErrorMemoryAllocation && !allocates) continue;
      for (int n = 1; n <= count && !HasFailure(); ++n) {
        SCOPED_TRACE(function + ", call " + std::to_string(n) + ", " + cudaGetErrorName(error));
        stand_in::reset();
        stand_in::fail_nth_call(function, n, error);
        const auto began = std::chrono::steady_clock::now();
        const Life life = whole_life();
        ++lives[life];
        // Not every life makes as many calls. After a second the clock takes a mark, whose calls
        // cost times alone.
        const bool failed = stand_in::calls(function) >= n;
        const bool marked = std::chrono::steady_clock::now() - began >= 1s;
        if (failed && !marked && !may_fail_unnoticed(function)) {
          EXPECT_NE(life, Life::kEnded);
        }
        // Only where memory is had may a GPU that goes on cost the feed; a cudaSetDevice comes
        // first.
        if (!allocates && function != "cudaSetDevice") {
          EXPECT_NE(life, Life::kFailed);
        }
        EXPECT_EQ(stand_in::live(), stand_in::Live{});
        EXPECT_EQ(stand_in::overruns(), 0);
        EXPECT_EQ(stand_in::spinning_waits(), 0);
      }
    }
  }
  EXPECT_GT(lives[Life::kFailed], 0);
  EXPECT_GT(lives[Life::kEnded] + lives[Life::kMoved],
            lives[Life::kFailed] + lives[Life::kNotOpened]);
}

}  // namespace
}  // namespace framelane::testing
