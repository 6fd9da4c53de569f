#include <gmock/gmock.h>

#include <atomic>
#include <functional>
#include <optional>
#include <utility>

#include "bench/harness/suite.hpp"
#include "pipeline/base/failure.hpp"
#include "tests/bench/product/spoiling_device.hpp"
#include "tests/bench/session.hpp"

namespace framelane::bench {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(StageSuiteTest, OnTheCpuEverySetupIsRight) {
  const Result result = run_suite(*find_suite("stage"), cpu_session());
  EXPECT_THAT(result.problems, IsEmpty());
  // The defaults of four formats; of the first, 5 other numbers of lanes, 4 of places, 6 of feeds,
  // and luma counted.
  ASSERT_EQ(result.rows.size(), 4u + 5 + 4 + 6 + 1);
  for (const Row& row : result.rows) {
    EXPECT_EQ(row.samples.size(), 2u);
    EXPECT_EQ(row.checked, Checked::kRight);
    for (const char* figure : {"p50", "p99", "CPU/1000"}) {
      EXPECT_GT(row.median_of(figure).value_or(0), 0) << figure;
    }
    EXPECT_FALSE(row.median_of("of uploads"));
  }
  EXPECT_NE(result.measured("stage", {{"feeds", std::int64_t{64}}}), nullptr);
  EXPECT_THAT(result.left_out,
              ElementsAre("ceilings of copies, and slices, of which the CPU has none: no GPU in "
                          "this test"));
  EXPECT_THAT(result.verdict, Contains(HasSubstr("37x23 bgra to nv12: lanes ")));
  EXPECT_THAT(result.verdict, Contains(HasSubstr("64 feeds of 37x23 bgra to nv12 carry ")));
  EXPECT_THAT(result.verdict, Contains(HasSubstr("37x23 bgra to nv12: with its luma counted ")));
  EXPECT_EQ(result.charts.size(), 3u);
}

TEST(StageSuiteTest, RenditionsOfAFrameAreOneRow) {
  Session session = cpu_session();
  session.renditions = {{37, 23}, {18, 12}, {50, 30}};
  const Result result = run_suite(*find_suite("stage"), session);
  EXPECT_THAT(result.problems, IsEmpty());
  ASSERT_EQ(result.rows.size(), 4u + 5 + 4 + 6 + 1);
  for (const Row& row : result.rows) {
    EXPECT_EQ(row.checked, Checked::kRight);
    EXPECT_THAT(to_string(parameter(row.parameters, "formats")),
                EndsWith(" at 37x23 + 18x12 + 50x30"));
  }
}

TEST(StageSuiteTest, AWrongByteOfARenditionFailsIt) {
  Session session = cpu_session();
  session.renditions = {{36, 24}, {18, 12}};
  session.cpu = std::make_shared<SpoilingDevice>();
  EXPECT_THAT(run_suite(*find_suite("stage"), session).problems,
              Contains(AllOf(HasSubstr("formats bgra to nv12 at 36x24 + 18x12, feeds 1, "),
                             HasSubstr(", 36x24, plane 1, row 11, byte 35 is "))));
}

TEST(StageSuiteTest, RenditionsThatNoFrameCanBecomeAreAProblem) {
  Session session = cpu_session();
  session.width = 640;
  session.renditions = {{320, 23}, {8, 23}};
  const Result result = run_suite(*find_suite("stage"), session);
  EXPECT_THAT(result.rows, IsEmpty());
  EXPECT_THAT(result.problems, AllOf(Not(IsEmpty()), Each(HasSubstr(" at 320x23 + 8x23: "))));
}

TEST(StageSuiteTest, AWrongByteFailsIt) {
  Session session = cpu_session();
  session.cpu = std::make_shared<SpoilingDevice>();
  const Result result = run_suite(*find_suite("stage"), session);
  EXPECT_EQ(result.problems.size(), 20u);  // every setup, at its first turn
  EXPECT_THAT(
      result.problems,
      Contains(AllOf(HasSubstr("wrong result of stage, size 37x23, formats bgra to nv12, feeds 1, "
                               "lanes 3, ring 8, slices auto: feed 0, frame "),
                     HasSubstr("plane 1, row 11, byte 35 is "))));
}

TEST(StageSuiteTest, AWrongCountFailsIt) {
  Session session = cpu_session();
  session.cpu = std::make_shared<SpoilingDevice>(SpoilingDevice::What::kLuma);
  EXPECT_THAT(run_suite(*find_suite("stage"), session).problems,
              ElementsAre(AllOf(HasSubstr("wrong result of stage, luma counted, size 37x23"),
                                EndsWith("its luma is counted wrongly"))));
}

TEST(StageSuiteTest, WhatWouldTakeMostOfTheMemoryIsLeftOut) {
  Session session = cpu_session();
  // A quarter holds 16 feeds of eight places and three lanes, and not 32.
  session.memory = 4 * std::size_t{16} * (8 + 3) * (37 * 23 + 2 * 19 * 12);
  const Result result = run_suite(*find_suite("stage"), session);
  EXPECT_THAT(result.left_out, AllOf(Contains(HasSubstr("32 feeds of 37x23: ")),
                                     Contains(HasSubstr("64 feeds of 37x23: ")),
                                     Not(Contains(HasSubstr("16 feeds of ")))));
  EXPECT_NE(result.measured("stage", {{"feeds", std::int64_t{16}}}), nullptr);
  EXPECT_EQ(result.measured("stage", {{"feeds", std::int64_t{32}}}), nullptr);
}

/// A device whose feeds do something else than to start.
class TrickDevice : public CpuDevice {
 public:
  explicit TrickDevice(std::function<void()> trick) : CpuDevice(1), trick_(std::move(trick)) {}
  std::unique_ptr<Stage> make_stage(FeedStats& stats, std::optional<int> slices) override {
    trick_();
    return CpuDevice::make_stage(stats, slices);
  }

 private:
  const std::function<void()> trick_;
};

TEST(StageSuiteTest, WhatIsNoWantOfMemoryIsNotCalledSo) {
  Session session = cpu_session();
  session.cpu = std::make_shared<TrickDevice>(
      [] { throw FeedError(FeedFault::kInternal, "it does not work"); });
  EXPECT_THAT(run_suite(*find_suite("stage"), session).problems,
              AllOf(Not(IsEmpty()), Each(EndsWith(": it does not work"))));
  session.cpu =
      std::make_shared<TrickDevice>([] { throw FeedError(FeedFault::kMemory, "no memory"); });
  EXPECT_THAT(run_suite(*find_suite("stage"), session).problems,
              AllOf(Not(IsEmpty()), Each(EndsWith(": no memory; ask for less with --size"))));
}

TEST(StageSuiteTest, AStopEndsATurn) {
  std::atomic<int> stop{0};
  Session session = cpu_session();
  session.seconds = 100'000;
  session.stop = &stop;
  session.cpu = std::make_shared<TrickDevice>([&stop] { stop = 2; });  // just before it begins
  const Result result = run_suite(*find_suite("stage"), session);
  EXPECT_THAT(result.problems, IsEmpty());
  EXPECT_TRUE(result.interrupted);
  EXPECT_EQ(result.rows.at(0).checked, Checked::kRight);
}

}  // namespace
}  // namespace framelane::bench
