// Not built for ThreadSanitizer: what it tests has one thread.
#include "daemon/bottleneck.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "pipeline/base/processors.hpp"
#include "tests/daemon/meter_gpu.hpp"

namespace framelane {
namespace {

StepLoads loads(std::initializer_list<std::pair<Bottleneck, double>> entries) {
  StepLoads result{};
  for (const auto& [step, load] : entries) result[index_of(step)] = load;
  return result;
}

TEST(BottleneckTest, SourceLimitsWhenNothingIsSaturated) {
  EXPECT_EQ(bottleneck(loads({{Bottleneck::kDecode, 0.5}, {Bottleneck::kEncode, 0.84}})),
            Bottleneck::kSource);
}

TEST(BottleneckTest, TheBusiestSaturatedStepLimits) {
  EXPECT_EQ(bottleneck(loads({{Bottleneck::kDecode, 0.97}, {Bottleneck::kEncode, 0.9}})),
            Bottleneck::kDecode);
}

TEST(BottleneckTest, TheLastOfEquallyBusyStepsLimits) {
  EXPECT_EQ(bottleneck(loads({{Bottleneck::kEncode, 1.0}, {Bottleneck::kOutput, 1.0}})),
            Bottleneck::kOutput);
}

TEST(BottleneckTest, AFullQueueIsASaturatedOutput) {
  auto options = std::make_shared<FeedOptions>();
  options->outputs.resize(1);
  options->outputs[0].name = "hls";
  options->outputs[0].queue = 100;
  const auto stats =
      std::make_shared<FeedStats>("gate", std::vector<FeedStats::EncodeSpec>{{"main", false}},
                                  std::vector<std::string>{"hls"}, 2);
  stats->outputs()[0]->queue_packets = 90;
  EXPECT_EQ(bottleneck(step_loads({options, stats})), Bottleneck::kOutput);
}

TEST(BottleneckTest, KernelLoadIsASumOnAGpuAndAMeanOnTheCpu) {
  const auto stats = std::make_shared<FeedStats>(
      "gate", std::vector<FeedStats::EncodeSpec>{{"main", false}}, std::vector<std::string>{}, 2);
  const auto now = BusyMeter::Clock::now();
  stats->lanes()[0]->busy.begin(Engine::kKernel, now - std::chrono::seconds(5));
  const auto kernel_load = [&] {
    return step_loads({std::make_shared<FeedOptions>(), stats})[index_of(Bottleneck::kKernel)];
  };
  stats->set_device("cpu");
  EXPECT_NEAR(kernel_load(), 0.5 * 2 / std::min(2, processors()), 0.02);
  stats->set_device("cuda:0");
  EXPECT_NEAR(kernel_load(), 1.0, 0.02);
}

TEST(BottleneckTest, LanesWithoutAProcessorOfTheirOwnDoNotHideThatTheCpuIsSaturated) {
  const int lanes = processors() + 2;
  const auto stats =
      std::make_shared<FeedStats>("gate", std::vector<FeedStats::EncodeSpec>{{"main", false}},
                                  std::vector<std::string>{}, lanes);
  stats->set_device("cpu");
  const auto now = BusyMeter::Clock::now();
  for (int i = 0; i < processors(); ++i) {
    stats->lanes()[static_cast<std::size_t>(i)]->busy.add(Engine::kKernel,
                                                          now - std::chrono::seconds(20), now);
  }
  EXPECT_EQ(bottleneck(step_loads({std::make_shared<FeedOptions>(), stats})), Bottleneck::kKernel);
}

TEST(BottleneckTest, CopyLoadIsTheSumOfTheLanes) {
  const auto stats = std::make_shared<FeedStats>(
      "gate", std::vector<FeedStats::EncodeSpec>{{"main", false}}, std::vector<std::string>{}, 2);
  const auto now = BusyMeter::Clock::now();
  using std::chrono::seconds;
  stats->lanes()[0]->busy.add(Engine::kH2d, now - seconds(20), now - seconds(5));
  stats->lanes()[1]->busy.add(Engine::kH2d, now - seconds(20), now - seconds(19));
  stats->lanes()[1]->busy.add(Engine::kH2d, now - seconds(5), now);
  stats->lanes()[1]->busy.add(Engine::kD2h, now - seconds(20), now - seconds(8));
  const StepLoads loads = step_loads({std::make_shared<FeedOptions>(), stats});
  EXPECT_NEAR(loads[index_of(Bottleneck::kH2d)], 1.0, 0.02);
  EXPECT_NEAR(loads[index_of(Bottleneck::kD2h)], 0.2, 0.02);
  EXPECT_EQ(bottleneck(loads), Bottleneck::kH2d);
}

TEST(BottleneckTest, ABusThatAnotherFeedSaturatesLimitsTheFeedThatWaitsForIt) {
  const auto gpu = std::make_shared<MeterGpu>();
  const auto stats = std::make_shared<FeedStats>(
      "gate", std::vector<FeedStats::EncodeSpec>{{"main", false}}, std::vector<std::string>{}, 2);
  stats->set_device("cuda:0");
  const FeedView feed{std::make_shared<FeedOptions>(), stats, nullptr, gpu};
  const auto now = BusyMeter::Clock::now();
  using std::chrono::seconds;
  gpu->busy_.add(Engine::kH2d, now - seconds(20), now);
  gpu->busy_.add(Engine::kKernel, now - seconds(20), now - seconds(8));
  stats->lanes()[0]->busy.add(Engine::kH2d, now - seconds(20), now - seconds(9));
  stats->lanes()[0]->held.add(now - seconds(20), now - seconds(5));
  StepLoads loads = step_loads(feed);
  EXPECT_NEAR(loads[index_of(Bottleneck::kH2d)], 0.5,
              0.02);  // it had frames there half of the time
  EXPECT_NEAR(loads[index_of(Bottleneck::kKernel)], 0.2, 0.02);
  EXPECT_EQ(bottleneck(loads), Bottleneck::kSource);
  stats->lanes()[1]->held.add(now - seconds(20), now - seconds(1));
  loads = step_loads(feed);
  EXPECT_EQ(bottleneck(loads), Bottleneck::kH2d);
  EXPECT_NEAR(loads[index_of(Bottleneck::kKernel)], 0.2, 0.02);  // which nobody saturates
}

}  // namespace
}  // namespace framelane
