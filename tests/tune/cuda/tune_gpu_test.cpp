#include <gmock/gmock.h>

#include <algorithm>

#include "bench/product/stage_feed.hpp"
#include "pipeline/stage/cpu_stage.hpp"
#include "pipeline/stage/gpu.hpp"
#include "tests/cuda_runtime/fixture.hpp"
#include "tune/tune.hpp"

namespace framelane::bench {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

Session gpu_session() {
  Session session;
  session.rounds = 1;
  session.seconds = 0;
  session.cpu = std::make_shared<CpuDevice>(1);
  GpuResult gpu = open_gpu(0, session.cpu);
  EXPECT_NE(gpu.device, nullptr) << gpu.why;
  session.gpu = std::move(gpu.device);
  return session;
}

std::vector<FeedKind> slow_feed() {
  FeedKind kind;
  kind.names = {"a"};
  kind.conversions = {conversion(PixelFormat::kBgra, PixelFormat::kNv12, {"", 37, 67})};
  kind.rate = 0.01;  // a GPU is busy with it for no time, the stand-in not either
  return {kind};
}

class GpuTuneTest : public CudaTest {};
class BrokenGpuTuneTest : public StandInTest {};

TEST_F(GpuTuneTest, EverySettingIsMeasuredAndTheBusBesideThem) {
  const Tuning tuning = tune(gpu_session(), true, slow_feed());
  EXPECT_THAT(tuning.measured.problems, IsEmpty());
  EXPECT_EQ(tuning.device, "cuda");
  EXPECT_EQ(tuning.device_reason, "the GPU alone was asked for (--device)");
  ASSERT_EQ(tuning.kinds.size(), 1u);
  for (const Row& row : tuning.measured.rows) {
    EXPECT_NE(row.checked, Checked::kWrong);
    EXPECT_FALSE(row.samples.empty()) << row.full_name();
  }
  for (const char* part : {"lanes", "ring", "slices"}) {
    EXPECT_NE(tuning.measured.measured("stage", {{"part", part}}), nullptr) << part;
  }
  for (const char* ceiling : {"uploads alone", "uploads beside downloads", "kernels alone"}) {
    EXPECT_NE(tuning.measured.measured(ceiling, {{"part", "ceiling"}}), nullptr) << ceiling;
  }
  EXPECT_THAT(tuning.kinds[0].slices_reason, HasSubstr("a frame by itself"));
  EXPECT_THAT(tuning.kinds[0].ceiling_reason, HasSubstr("; the limit is "));
}

TEST_F(GpuTuneTest, BothDevicesAreComparedInTheSameRounds) {
  const Tuning tuning = tune(gpu_session(), false, slow_feed());
  EXPECT_THAT(tuning.measured.problems, IsEmpty());
  EXPECT_THAT(tuning.device_reason, AllOf(HasSubstr(" frames/s of 37x67 bgra to nv12 on cuda:0, "),
                                          HasSubstr(" on the CPU's ")));
  EXPECT_NE(tuning.measured.measured("stage", {{"device", "cuda:0"}, {"part", "device"}}), nullptr);
  EXPECT_NE(tuning.measured.measured("stage", {{"device", "cpu"}, {"part", "device"}}), nullptr);
}

TEST_F(GpuTuneTest, FeedsThatNeedMostOfTheGpuAreNotSliced) {
  std::vector<FeedKind> kinds = slow_feed();
  kinds[0].rate = 1e9;
  const Tuning tuning = tune(gpu_session(), true, kinds);
  ASSERT_EQ(tuning.kinds.size(), 1u);
  EXPECT_EQ(tuning.kinds[0].settings.slices, kAutoSlices);
  EXPECT_THAT(tuning.kinds[0].slices_reason, HasSubstr("frames find others before them"));
  EXPECT_EQ(tuning.kinds[0].ceiling.feeds, 0);
}

TEST_F(BrokenGpuTuneTest, AGpuWithoutRoomLeavesTheCpu) {
  const Session session = gpu_session();
  stand_in::set_memory(5'000);
  std::vector<FeedKind> kinds = slow_feed();
  kinds[0].feeds = 4;
  const Tuning tuning = tune(session, false, kinds);
  EXPECT_THAT(tuning.measured.problems, IsEmpty());
  EXPECT_EQ(tuning.device, "cpu");
  EXPECT_THAT(tuning.device_reason, StartsWith("cuda:0 cannot do 37x67 bgra to nv12: "));
  EXPECT_EQ(tuning.kinds.size(), 1u);
  // The GPU's memory does not limit how many feeds the CPU is measured with.
  EXPECT_NE(tuning.measured.measured("stage", {{"part", "lanes"}, {"feeds", std::int64_t{4}}}),
            nullptr);
  const Tuning alone = tune(session, true, slow_feed());
  EXPECT_THAT(alone.kinds, IsEmpty());
  EXPECT_EQ(alone.measured.problems.size(), 1u);
}

TEST_F(BrokenGpuTuneTest, AGpuWithoutRoomForOneKindSaysWhichAndWhy) {
  const Session session = gpu_session();
  stand_in::set_memory(750'000);
  std::vector<FeedKind> kinds = slow_feed();
  kinds.push_back(kinds[0]);
  kinds[1].conversions = {conversion(PixelFormat::kBgra, PixelFormat::kNv12, {"", 320, 240})};
  const Tuning tuning = tune(session, false, kinds);
  EXPECT_THAT(tuning.measured.problems, IsEmpty());
  EXPECT_NE(tuning.measured.measured("stage", {{"device", "cuda:0"}, {"size", "37x67"}}), nullptr);
  EXPECT_EQ(tuning.device, "cpu");
  EXPECT_THAT(tuning.device_reason, StartsWith("cuda:0 cannot do 320x240 bgra to nv12: "));
}

TEST_F(BrokenGpuTuneTest, AWrongByteLeavesNothingToRecommend) {
  const Session session = gpu_session();
  stand_in::spoil_downloads();
  const Tuning tuning = tune(session, false, slow_feed());
  EXPECT_THAT(tuning.kinds, IsEmpty());
  EXPECT_THAT(tuning.measured.problems, ElementsAre(HasSubstr("wrong result of stage, ")));
}

TEST_F(BrokenGpuTuneTest, AGpuThatIsLostLeavesNothingToRecommend) {
  const Session session = gpu_session();
  stand_in::lose_device_at_call(400);
  const Tuning tuning = tune(session, true, slow_feed());
  EXPECT_THAT(tuning.kinds, IsEmpty());
  EXPECT_THAT(tuning.measured.problems, ::testing::Contains("cuda:0 was lost"));
}

}  // namespace
}  // namespace framelane::bench
