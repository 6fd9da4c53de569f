// Not built for ThreadSanitizer: what it tests has one thread.
#include "daemon/metrics.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>

#include "pipeline/encode/nvenc.hpp"
#include "tests/daemon/meter_gpu.hpp"
#include "tests/pipeline/measure/frame_lines.hpp"

namespace framelane {
namespace {

/// The samples of a page, by "name{labels}".
std::map<std::string, double> samples_of(const std::string& page) {
  std::map<std::string, double> samples;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    const auto space = line.rfind(' ');
    samples[line.substr(0, space)] = std::stod(line.substr(space + 1));
  }
  return samples;
}

class MetricsTest : public ::testing::Test {
 protected:
  MetricsTest() {
    options_->name = "gate";
    options_->outputs.resize(1);
    options_->outputs[0].name = "hls";
  }
  ConfigReload::Status config_{.loaded = std::chrono::system_clock::time_point()};
  std::string page() const {
    return metrics_text({{options_, stats_}, {options_, copied_}}, {device_}, config_, nullptr,
                        TraceCounts{});
  }
  std::map<std::string, double> samples() const { return samples_of(page()); }
  bool has(const std::string& name) const { return samples().contains(name); }
  double sample(const std::string& name) const {
    const auto all = samples();
    const auto found = all.find(name);
    EXPECT_NE(found, all.end()) << name;
    return found == all.end() ? -1 : found->second;
  }

  std::shared_ptr<FeedOptions> options_ = std::make_shared<FeedOptions>();
  std::shared_ptr<FeedStats> stats_ = std::make_shared<FeedStats>(
      "gate", std::vector<FeedStats::EncodeSpec>{{"main", true}, {"live", false}},
      std::vector<std::string>{"hls"}, 2);
  std::shared_ptr<FeedStats> copied_ =
      std::make_shared<FeedStats>("yard", std::vector<FeedStats::EncodeSpec>{{"main", true}},
                                  std::vector<std::string>{"rec"}, 0);
  std::shared_ptr<Device> device_ = make_cpu_device();
};

TEST_F(MetricsTest, PromtoolFindsNothingToSay) {
  if (std::system("command -v promtool >/dev/null") != 0) {
    GTEST_SKIP() << "promtool is not installed";
  }
  // With a codec name that must be escaped.
  stats_->set_decoder("h\"2\\6\n4");
  FILE* promtool = popen("promtool check metrics 2>&1 >/dev/null", "w");
  ASSERT_NE(promtool, nullptr);
  const std::string text = page();
  std::fwrite(text.data(), 1, text.size(), promtool);
  const int status = pclose(promtool);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(MetricsTest, EveryReasonExistsFromTheStart) {
  const auto all = samples();
  for (const auto reason : kDropReasonNames) {
    EXPECT_EQ(all.count("framelane_frames_dropped_total{feed=\"gate\",encode=\"live\",reason=\"" +
                        std::string(reason) + "\"}"),
              1u);
  }
  for (const auto reason : kIoFaultNames) {
    EXPECT_EQ(all.count("framelane_source_reconnects_total{feed=\"gate\",reason=\"" +
                        std::string(reason) + "\"}"),
              1u);
  }
  for (const auto reason : kPacketDropNames) {
    EXPECT_EQ(all.count("framelane_output_packets_dropped_total{feed=\"gate\",output=\"hls\","
                        "reason=\"" +
                        std::string(reason) + "\"}"),
              1u);
  }
}

TEST_F(MetricsTest, TheLedgerBalancesOnThePage) {
  std::vector<FrameTicket> tickets(1);
  for (int i = 0; i < 3; ++i) {
    open_tickets(stats_, stats_->run(), testing::frame_lines(*stats_), tickets);
    if (i == 0) tickets[0].out();
    if (i == 1) tickets[0].drop(DropReason::kRingFull);
  }
  const auto all = samples();
  EXPECT_EQ(all.at("framelane_frames_in_total{feed=\"gate\"}"), 3);
  EXPECT_EQ(all.at("framelane_frames_out_total{feed=\"gate\",encode=\"live\"}"), 1);
  EXPECT_EQ(all.at("framelane_frames_in_flight{feed=\"gate\",encode=\"live\"}"), 1);
  EXPECT_EQ(all.at("framelane_frames_dropped_total{feed=\"gate\",encode=\"live\","
                   "reason=\"ring_full\"}"),
            1);
  tickets[0].drop(DropReason::kStop);
}

TEST_F(MetricsTest, OnlyTranscodedSoundHasALedger) {
  stats_ = std::make_shared<FeedStats>(
      "gate", std::vector<FeedStats::EncodeSpec>{{"main", true, true}, {"live", false}},
      std::vector<std::string>{"hls"}, 2);
  AudioStats& audio = stats_->encode(0).audio;
  for (int i = 0; i < 3; ++i) audio.in(audio.run());
  audio.out(audio.run());
  audio.drop(audio.run(), AudioDrop::kDecode);
  audio.count(AudioRepair::kTrim);
  const std::string labels = "{feed=\"gate\",encode=\"main\"";
  EXPECT_EQ(sample("framelane_audio_packets_in_total" + labels + "}"), 3);
  EXPECT_EQ(sample("framelane_audio_packets_out_total" + labels + "}"), 1);
  EXPECT_EQ(sample("framelane_audio_packets_in_flight" + labels + "}"), 1);
  EXPECT_EQ(sample("framelane_audio_packets_dropped_total" + labels + ",reason=\"decode\"}"), 1);
  EXPECT_EQ(sample("framelane_audio_repairs_total" + labels + ",reason=\"trim\"}"), 1);
  EXPECT_FALSE(has("framelane_audio_packets_in_total{feed=\"gate\",encode=\"live\"}"));
}

TEST_F(MetricsTest, CopiedEncodesHaveNoFrames) {
  EXPECT_FALSE(has("framelane_frames_out_total{feed=\"gate\",encode=\"main\"}"));
  EXPECT_TRUE(has("framelane_frames_out_total{feed=\"gate\",encode=\"live\"}"));
}

TEST_F(MetricsTest, AFeedOfCopiesHasNoFrameSteps) {
  EXPECT_FALSE(has("framelane_stage_duration_seconds_count{feed=\"yard\",stage=\"decode\"}"));
  EXPECT_FALSE(has("framelane_frames_in_total{feed=\"yard\"}"));
  EXPECT_EQ(sample("framelane_stage_duration_seconds_count{feed=\"yard\",stage=\"mux\"}"), 0);
}

TEST_F(MetricsTest, TheCpuHasNoTransfers) {
  stats_->set_device("cpu");
  EXPECT_FALSE(has("framelane_stage_duration_seconds_count{feed=\"gate\",stage=\"h2d\"}"));
  EXPECT_FALSE(has("framelane_lane_busy_seconds_total{feed=\"gate\",lane=\"0\",op=\"h2d\"}"));
  EXPECT_TRUE(has("framelane_lane_busy_seconds_total{feed=\"gate\",lane=\"0\",op=\"kernel\"}"));
}

TEST_F(MetricsTest, AGpuShowsEachEngineAndTheirOverlap) {
  const auto gpu = std::make_shared<MeterGpu>();
  const auto now = BusyMeter::Clock::now();
  using std::chrono::seconds;
  gpu->busy_.add(Engine::kH2d, now - seconds(8), now - seconds(4));
  gpu->busy_.add(Engine::kKernel, now - seconds(6), now - seconds(4));
  gpu->busy_.add(Engine::kD2h, now - seconds(5), now - seconds(3));
  device_ = gpu;
  EXPECT_EQ(sample("framelane_engine_busy_seconds_total{device=\"cuda:0\",engine=\"h2d\"}"), 4);
  EXPECT_EQ(sample("framelane_engine_busy_seconds_total{device=\"cuda:0\",engine=\"kernel\"}"), 2);
  EXPECT_EQ(sample("framelane_engine_busy_seconds_total{device=\"cuda:0\",engine=\"d2h\"}"), 2);
  EXPECT_EQ(sample("framelane_device_busy_seconds_total{device=\"cuda:0\"}"), 5);
  EXPECT_NEAR(sample("framelane_overlap_ratio{device=\"cuda:0\"}"), 8.0 / 5.0, 0.01);
  EXPECT_EQ(sample("framelane_device_memory_bytes{device=\"cuda:0\"}"), 4096);
  {
    const NvencSession session("cuda:0");
    const NvencSession elsewhere("cuda:1");
    EXPECT_EQ(sample("framelane_device_encoder_sessions{device=\"cuda:0\"}"), 1);
  }
  EXPECT_EQ(sample("framelane_device_encoder_sessions{device=\"cuda:0\"}"), 0);
  EXPECT_EQ(sample("framelane_device_info{device=\"cuda:0\",name=\"GPU\",uuid=\"GPU-1234\"}"), 1);
  EXPECT_EQ(sample("framelane_device_up{device=\"cuda:0\"}"), 1);
  gpu->lost_ = true;
  EXPECT_EQ(sample("framelane_device_up{device=\"cuda:0\"}"), 0);
}

TEST_F(MetricsTest, LanesOfAGpuShowTheirTransfers) {
  stats_->set_device("cuda:0");
  const auto now = BusyMeter::Clock::now();
  using std::chrono::seconds;
  stats_->lanes()[0]->busy.add(Engine::kH2d, now - seconds(30), now - seconds(20));
  stats_->lanes()[0]->busy.add(Engine::kH2d, now - seconds(3), now - seconds(1));
  stats_->lanes()[0]->busy.add(Engine::kD2h, now - seconds(2), now);
  stats_->observe(StageStep::kH2d, seconds(2));
  const std::string lane = "{feed=\"gate\",lane=\"0\"";
  EXPECT_EQ(sample("framelane_lane_busy_seconds_total" + lane + ",op=\"h2d\"}"), 12);
  EXPECT_EQ(sample("framelane_lane_busy_seconds_total" + lane + ",op=\"d2h\"}"), 2);
  EXPECT_NEAR(sample("framelane_lane_occupancy_ratio" + lane + "}"), 0.3, 0.01);
  EXPECT_EQ(sample("framelane_stage_duration_seconds_count{feed=\"gate\",stage=\"h2d\"}"), 1);
  // After the loss of the GPU the feed runs on the CPU, and the counters stay.
  stats_->set_device("cpu");
  EXPECT_EQ(sample("framelane_lane_busy_seconds_total" + lane + ",op=\"h2d\"}"), 12);
}

TEST_F(MetricsTest, AFeedIsUpWhileItRunsAndDataComes) {
  stats_->set_state(FeedState::kRunning, "");
  EXPECT_EQ(sample("framelane_feed_up{feed=\"gate\"}"), 0);
  stats_->arrived(stats_->run());
  EXPECT_EQ(sample("framelane_feed_up{feed=\"gate\"}"), 1);
  stats_->set_state(FeedState::kBackoff, "lost");
  EXPECT_EQ(sample("framelane_feed_up{feed=\"gate\"}"), 0);
}

TEST_F(MetricsTest, AFeedWithoutDataForItsTimeoutIsDown) {
  options_->input.timeout = std::chrono::milliseconds(0);
  stats_->set_state(FeedState::kRunning, "");
  stats_->arrived(stats_->run());
  EXPECT_EQ(sample("framelane_feed_up{feed=\"gate\"}"), 0);
}

TEST_F(MetricsTest, ExactlyOneStateIsSet) {
  stats_->set_state(FeedState::kBackoff, "lost");
  EXPECT_EQ(sample("framelane_feed_state{feed=\"gate\",state=\"backoff\"}"), 1);
  EXPECT_EQ(sample("framelane_feed_state{feed=\"gate\",state=\"running\"}"), 0);
}

TEST_F(MetricsTest, ARunningFeedHasOneBottleneckAndOthersNone) {
  stats_->set_state(FeedState::kRunning, "");
  double gate = 0;
  double yard = 0;
  for (const auto step : kBottleneckNames) {
    const std::string labels = "\",stage=\"" + std::string(step) + "\"}";
    gate += sample("framelane_feed_bottleneck{feed=\"gate" + labels);
    yard += sample("framelane_feed_bottleneck{feed=\"yard" + labels);
  }
  EXPECT_EQ(gate, 1);
  EXPECT_EQ(yard, 0);
}

TEST_F(MetricsTest, HistogramBucketsCumulateUpToTheCount) {
  stats_->observe(StageStep::kDecode, std::chrono::milliseconds(3));
  stats_->observe(StageStep::kDecode, std::chrono::seconds(100));
  const std::string labels = "{feed=\"gate\",stage=\"decode\"";
  const std::string bucket = "framelane_stage_duration_seconds_bucket" + labels + ",le=\"";
  EXPECT_EQ(sample(bucket + "0.0025\"}"), 0);
  EXPECT_EQ(sample(bucket + "0.005\"}"), 1);
  EXPECT_EQ(sample(bucket + "10\"}"), 1);
  EXPECT_EQ(sample(bucket + "+Inf\"}"), 2);
  EXPECT_EQ(sample("framelane_stage_duration_seconds_count" + labels + "}"), 2);
}

TEST_F(MetricsTest, OutputsShowTheirState) {
  OutputStats& output = *stats_->outputs()[0];
  output.set_state(output.begin_run(), FeedState::kRunning, "");
  output.bytes = 123456;
  output.queue_packets = 7;
  const std::string labels = "{feed=\"gate\",output=\"hls\"}";
  EXPECT_EQ(sample("framelane_output_up" + labels), 1);
  EXPECT_EQ(sample("framelane_output_bytes_total" + labels), 123456);
  EXPECT_EQ(sample("framelane_output_queue_packets" + labels), 7);
}

TEST_F(MetricsTest, TheProcessReportsItself) {
  const auto all = samples();
  EXPECT_GT(all.at("process_resident_memory_bytes"), 1e6);
  EXPECT_GE(all.at("process_virtual_memory_bytes"), all.at("process_resident_memory_bytes"));
  EXPECT_GE(all.at("process_open_fds"), 3);
  EXPECT_GT(all.at("process_max_fds"), all.at("process_open_fds"));
  const double now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  EXPECT_NEAR(all.at("process_start_time_seconds"), now, 600);
}

}  // namespace
}  // namespace framelane
