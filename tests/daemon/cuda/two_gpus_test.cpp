// Feeds on two GPUs, of which one is lost.
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "daemon/device_set.hpp"
#include "daemon/supervised_feed.hpp"
#include "pipeline/stage/cuda/cuda_device.hpp"
#include "tests/cuda_runtime/fixture.hpp"
#include "tests/pipeline/base/wait.hpp"
#include "tests/pipeline/source/media_files.hpp"

namespace framelane {
namespace {

using namespace std::chrono_literals;
using Kind = DeviceChoice::Kind;

class OpenDevicesTest : public StandInTest {
 protected:
  void SetUp() override {
    StandInTest::SetUp();
    if (!IsSkipped()) stand_in::set_device_count(2);
  }
  /// The names of the devices that are opened for one feed with each of these choices.
  static std::vector<std::string> open(const DeviceChoice& choice,
                                       const std::vector<std::optional<DeviceChoice>>& feeds,
                                       bool one = false) {
    std::vector<FeedOptions> options(feeds.size());
    for (std::size_t i = 0; i < feeds.size(); ++i) options[i].device = feeds[i];
    const std::shared_ptr<DeviceSet> devices = open_devices(choice, options, one);
    std::vector<std::string> names;
    if (devices == nullptr) return names;
    for (const auto& device : devices->all()) names.push_back(device->name());
    return names;
  }
  using Names = std::vector<std::string>;
};

TEST_F(OpenDevicesTest, AutoOpensEveryGpu) {
  EXPECT_EQ(open({}, {std::nullopt}), (Names{"cuda:0", "cuda:1", "cpu"}));
  EXPECT_EQ(open({Kind::kCuda}, {std::nullopt}), (Names{"cuda:0", "cuda:1", "cpu"}));
}

TEST_F(OpenDevicesTest, OnlyWhatIsAskedForIsOpened) {
  EXPECT_EQ(open({Kind::kCpu}, {std::nullopt}), Names{"cpu"});
  EXPECT_EQ(open({Kind::kCuda, 1}, {std::nullopt}), (Names{"cuda:1", "cpu"}));
  EXPECT_EQ(open({Kind::kCpu}, {std::nullopt, DeviceChoice{Kind::kCuda, 1}}),
            (Names{"cuda:1", "cpu"}));
  EXPECT_EQ(open({}, {DeviceChoice{Kind::kCpu}}), Names{"cpu"});
  EXPECT_EQ(open({}, {std::nullopt}, true), (Names{"cuda:0", "cpu"}));
}

TEST_F(OpenDevicesTest, AGpuThatFailsIsLeftOut) {
  stand_in::fail_nth_call("cudaInitDevice", 1);
  EXPECT_EQ(open({}, {std::nullopt}), (Names{"cuda:1", "cpu"}));
  stand_in::fail_nth_call("cudaInitDevice", 1);
  EXPECT_EQ(open({}, {std::nullopt}, true), (Names{"cuda:1", "cpu"}));
}

TEST_F(OpenDevicesTest, AGpuThatIsNotThereEndsTheProcessOnlyIfTheFileAsksForIt) {
  EXPECT_EQ(open({Kind::kCuda, 2}, {std::nullopt}), Names{});
  EXPECT_EQ(open({}, {std::nullopt, DeviceChoice{Kind::kCuda, 2}}),
            (Names{"cuda:0", "cuda:1", "cpu"}));
}

/// Two GPUs with a feed on each, which plays a clip in real time, for ever.
class TwoGpusTest : public OpenDevicesTest {
 protected:
  void SetUp() override {
    OpenDevicesTest::SetUp();
    if (IsSkipped()) return;
    spdlog::set_level(spdlog::level::off);
    const auto registrar = std::make_shared<GpuRegistrar>();
    const std::shared_ptr<Device> cpu = make_cpu_device();
    for (int i = 0; i < 2; ++i)
      gpus_.push_back(CudaDevice::open(i, cpu, CudaDevice::kHungAfter, registrar));
    devices_ = std::make_shared<DeviceSet>(
        DeviceChoice{}, std::vector<std::shared_ptr<Device>>(gpus_.begin(), gpus_.end()), cpu);
    feeds_.push_back(make_feed("gate"));
    feeds_.push_back(make_feed("yard"));
    for (const auto& feed : feeds_) feed->start();
    EXPECT_TRUE(runs_on(0, "cuda:0"));
    EXPECT_TRUE(runs_on(1, "cuda:1"));
  }
  void TearDown() override {
    for (const auto& feed : feeds_) feed->drain();
    for (const auto& feed : feeds_) {
      EXPECT_TRUE(feed->wait_for(60s));
      feed->finish();
      expect_balanced(feed->view());
    }
    feeds_.clear();
    devices_.reset();
    gpus_.clear();
    OpenDevicesTest::TearDown();
  }
  std::unique_ptr<SupervisedFeed> make_feed(const std::string& name) {
    FeedOptions options;
    options.name = name;
    options.input.url = clip_;
    options.input.loop = true;
    options.input.pace = InputOptions::Pace::kRealtime;
    EncodeOptions live;
    live.name = "live";
    live.codecs = {{"mpeg4", {}}};
    live.format = PixelFormat::kI420;
    live.color.range = Range::kFull;
    options.encodes = {live};
    return std::make_unique<SupervisedFeed>(std::move(options), devices_,
                                            std::chrono::steady_clock::now, [] {});
  }
  static std::uint64_t frames_out(const FeedView& view) {
    return view.stats->ledger().encodes[0].out;
  }
  static void expect_balanced(const FeedView& view) {
    const EncodeCounts counts = view.stats->ledger().encodes[0];
    EXPECT_EQ(counts.in_flight, 0);
    EXPECT_EQ(counts.in, counts.out + std::accumulate(counts.dropped.begin(), counts.dropped.end(),
                                                      std::uint64_t{0}));
  }
  /// Looks after the feeds, as the supervisor does, until ten frames of this one have come out on
  /// the device.
  bool runs_on(std::size_t feed, const std::string& device) {
    std::uint64_t from = 0;
    bool there = false;
    return testing::comes_true([&] {
      for (const auto& each : feeds_) each->turn();
      const FeedView view = feeds_[feed]->view();
      if (view.stats->status().device != device) return there = false;
      if (!std::exchange(there, true)) from = frames_out(view);
      return frames_out(view) >= from + 10;
    });
  }
  std::uint64_t device_restarts(std::size_t feed) const {
    return feeds_[feed]->view().stats->restarts[index_of(FeedFault::kDevice)];
  }

  const testing::TempFolder folder_;
  const std::string clip_ = [this] {
    testing::ffmpeg("-i '" + testing::clip("street_h264.mp4") + "' -vf scale=160:120 -c:v mpeg4 '" +
                    (folder_ / "small.mp4") + "'");
    return folder_ / "small.mp4";
  }();
  std::vector<std::shared_ptr<CudaDevice>> gpus_;
  std::shared_ptr<DeviceSet> devices_;
  std::vector<std::unique_ptr<SupervisedFeed>> feeds_;
};

TEST_F(TwoGpusTest, TheFeedsOfAGpuThatHangsStartAgainOnTheOther) {
  const std::vector<cudaStream_t> streams = stand_in::streams();
  for (std::size_t i = 0; i < streams.size() / 2; ++i) stand_in::hold(streams[i]);  // the first's
  EXPECT_TRUE(runs_on(0, "cuda:1"));
  EXPECT_TRUE(gpus_[0]->lost());
  EXPECT_FALSE(gpus_[1]->lost());
  EXPECT_EQ(device_restarts(0), 1u);
  EXPECT_EQ(device_restarts(1), 0u);
  EXPECT_TRUE(runs_on(1, "cuda:1"));
  stand_in::release();
  EXPECT_TRUE(testing::comes_true([&] { return !gpus_[0]->context()->has_abandoned_jobs(); }));
  stand_in::forget_registrations();  // of what the first feed freed during the hang
}

TEST_F(TwoGpusTest, WhenAFailureEndsCudaForTheProcessTheFeedsGoOnOnTheCpu) {
  stand_in::lose_device(cudaErrorIllegalAddress);
  EXPECT_TRUE(runs_on(0, "cpu"));
  EXPECT_TRUE(runs_on(1, "cpu"));
  EXPECT_EQ(device_restarts(0) + device_restarts(1), 0u);
}

}  // namespace
}  // namespace framelane
