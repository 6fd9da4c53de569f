#include <gmock/gmock.h>

#include <atomic>
#include <iterator>

#include "bench/harness/gpu_part.hpp"
#include "bench/product/stage_ceilings.hpp"
#include "bench/product/stage_feed.hpp"
#include "pipeline/stage/cuda/cuda_plan.hpp"
#include "tests/bench/gpu_suites.hpp"

namespace framelane::bench {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class StageGpuTest : public CudaTest {};
class BrokenStageGpuTest : public StandInTest {};

TEST_F(BrokenStageGpuTest, TooManyFeedsForAGpuLeaveTheFewer) {
  const Session session = gpu_session();
  const Conversion convert =
      conversion(PixelFormat::kBgra, PixelFormat::kNv12, {"", session.width, session.height});
  stand_in::set_memory(56 * plan_bytes({&convert, 1}, FrameMemory::kHost, kLanes));
  const Result result = run("stage", session);
  EXPECT_THAT(result.problems,
              ElementsAre(AllOf(HasSubstr("stage, size 37x23, formats bgra to nv12, feeds 64, "),
                                HasSubstr("; ask for less with --size"))));
  EXPECT_EQ(result.measured("stage", {{"feeds", std::int64_t{64}}}), nullptr);
  EXPECT_NE(result.measured("stage", {{"feeds", std::int64_t{32}}}), nullptr);
}

TEST_F(StageGpuTest, StageIsRightInEveryWay) {
  Session session = gpu_session();
  session.height = 67;  // to be cut in slices
  const Result result = run("stage", session);
  EXPECT_THAT(result.problems, IsEmpty());
  // The defaults of four formats; of the first, 5 other numbers of lanes, 4 of places, 5 of slices
  // with either of two rings, 6 of feeds.
  EXPECT_EQ(count(result, "stage"), 4 + 5 + 4 + 2 * 5 + 6);
  EXPECT_EQ(count(result, "uploads alone"), 4);
  EXPECT_EQ(count(result, "uploads beside downloads"), 4);
  expect_measured_and_right(result, "stage");
  EXPECT_EQ(count(result, "stage, luma counted"), 1);
  expect_measured_and_right(result, "stage, luma counted");
  for (const char* name : {"default stream, pageable memory", "default stream, pinned memory",
                           "eight streams that slice one frame"}) {
    EXPECT_EQ(count(result, name), 1);
    expect_measured_and_right(result, name);
    EXPECT_THAT(result.verdict, Contains(HasSubstr(std::string(" times as fast as ") + name)));
  }
  constexpr const char* kCeilings[] = {"uploads alone", "uploads beside downloads",
                                       "downloads alone", "kernels alone"};
  for (std::size_t i = 0; i < std::size(kCeilings); ++i) {
    EXPECT_EQ(result.rows[i].name, kCeilings[i]);  // they are first
  }
  EXPECT_EQ(count(result, "downloads alone"), 1);
  EXPECT_EQ(count(result, "kernels alone"), 1);
  EXPECT_THAT(result.verdict, Contains(HasSubstr(": a frame alone is back within ")));
  for (const Row& row : result.rows) {
    if (!row.is("stage")) continue;
    for (const char* figure : {"p50", "p99", "CPU/1000", "of uploads", "of both ways"}) {
      EXPECT_GT(row.median_of(figure).value_or(0), 0) << figure;
    }
  }
  EXPECT_THAT(result.left_out, IsEmpty());
  EXPECT_THAT(result.verdict,
              Contains(HasSubstr("37x67 bgra to nv12, one frame at a time: slices")));
  EXPECT_EQ(result.charts.size(), 5u);
  EXPECT_EQ(result.charts[0].levels.size(), 2u);
}

TEST_F(StageGpuTest, RenditionsAreMeasuredBesideAllTheirDownloads) {
  Session session = gpu_session();
  session.width = 16;
  session.height = 12;
  session.renditions = {{16, 12}, {8, 6}};
  const Result result = run("stage", session);
  EXPECT_THAT(result.problems, IsEmpty());
  expect_measured_and_right(result, "stage");
  for (const char* name :
       {"uploads alone", "uploads beside downloads", "downloads alone", "kernels alone"}) {
    EXPECT_GT(count(result, name), 0) << name;
  }
  EXPECT_EQ(count(result, "default stream, pageable memory"), 0);  // it makes one picture
}

TEST_F(BrokenStageGpuTest, AWrongByteFailsStage) {
  const Session session = gpu_session();
  stand_in::spoil_downloads();
  const Result result = run("stage", session);
  EXPECT_EQ(result.problems.size(), 30u + 3);  // every setup, and the usual ways
  EXPECT_THAT(result.problems,
              Contains(HasSubstr("wrong result of eight streams that slice one frame, ")));
  EXPECT_THAT(
      result.problems,
      Contains(HasSubstr("wrong result of stage, size 37x23, formats bgra to nv12, feeds 1, "
                         "lanes 3, ring 8, slices auto: feed 0, frame 1, plane ")));
}

TEST_F(StageGpuTest, AStopEndsTheTurnOfACeiling) {
  const Session session = gpu_session();
  const Conversion convert =
      conversion(PixelFormat::kBgra, PixelFormat::kNv12, {"", session.width, session.height});
  FramePool pool;
  const std::vector<PooledImage> frames =
      make_frames(pool, convert.source, {"", session.width, session.height}, 2);
  const std::atomic<int> stop{2};
  const StageCeilings ceilings(context_of(session), {&convert, 1}, frames, &stop);
  EXPECT_GT(ceilings.duplex(3600), 0);
}

TEST_F(BrokenStageGpuTest, AStageThatGoesOnOnTheCpuIsNotTakenForTheGpus) {
  const Session session = gpu_session();
  stand_in::fail_nth_call("cudaStreamWaitEvent", 5);
  EXPECT_THAT(run("stage", session).problems, ElementsAre(HasSubstr("it went on on cpu")));
}

TEST_F(BrokenStageGpuTest, AGpuThatIsLostFailsStage) {
  const Session session = gpu_session();
  stand_in::lose_device_at_call(400);
  EXPECT_THAT(run("stage", session).problems, Contains("cuda:0 was lost"));
}

}  // namespace
}  // namespace framelane::bench
