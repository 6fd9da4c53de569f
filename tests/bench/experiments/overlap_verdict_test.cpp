#include "bench/experiments/overlap_verdict.hpp"

#include <gmock/gmock.h>

#include "bench/harness/ceilings.hpp"

namespace framelane::bench {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

void add(Result& result, const char* memory, const char* order, std::int64_t chunk,
         std::int64_t streams, std::vector<double> samples) {
  result.rows.push_back(
      {.name = kInChunks,
       .parameters = {{kMemory, memory}, {kOrder, order}, {kChunk, chunk}, {kOverStreams, streams}},
       .samples = std::move(samples)});
}
void add_pair(Result& result, std::int64_t chunk, std::int64_t streams, std::vector<double> depth,
              std::vector<double> breadth) {
  add(result, "pinned", "depth first", chunk, streams, std::move(depth));
  add(result, "pinned", "breadth first", chunk, streams, std::move(breadth));
}

TEST(IssueOrderVerdictTest, ItMattersWhereTheBestOfOneIsBetter) {
  Result result;
  add_pair(result, 64, 2, {6}, {6});
  add_pair(result, 256, 4, {5}, {4});
  EXPECT_EQ(
      judge_order(result),
      "the order of issue matters: at its best breadth first takes 0.80 times what depth "
      "first takes at its best; in 1 of 2 pairs of chunk and streams it makes a difference of "
      "more than 3 % that is not noise (worst: 256 KiB over 4 streams, breadth first 0.80 times "
      "depth first)");
}

TEST(IssueOrderVerdictTest, ItDoesNotMatterWhereOnlyPairsDifferThatAreNotTheBest) {
  Result result;
  add_pair(result, 64, 2, {9}, {6});
  add_pair(result, 64, 4, {6}, {6.5});
  add_pair(result, 256, 4, {4}, {4.04});
  EXPECT_EQ(
      judge_order(result),
      "the order of issue does not matter where chunk and streams are chosen well: the best "
      "of both orders cannot be told apart (1.01 times); in 2 of 3 pairs of chunk and streams "
      "it makes a difference of more than 3 % that is not noise (worst: 64 KiB over 2 streams, "
      "breadth first 0.67 "
      "times depth first)");
}

TEST(IssueOrderVerdictTest, TheBestNeedNotBeOfOnePair) {
  Result result;
  add_pair(result, 64, 2, {4}, {5});
  add_pair(result, 256, 2, {5}, {4});
  EXPECT_THAT(judge_order(result),
              AllOf(HasSubstr(" does not matter "), HasSubstr("(1.00 times); in 2 of 2 pairs ")));
}

TEST(IssueOrderVerdictTest, WhatNoiseMayHaveDoneIsNoDifference) {
  Result result;
  add_pair(result, 64, 2, {4, 5, 6}, {5, 6, 7});  // 1.2 times, and p10 of one below the other's p90
  EXPECT_THAT(judge_order(result),
              AllOf(HasSubstr(" does not matter "), HasSubstr("; in none of 1 pairs ")));
}

TEST(IssueOrderVerdictTest, OnlyPinnedMemoryAndPairsThatAreRightCount) {
  Result result;
  add(result, "pageable", "depth first", 64, 2, {4});
  add(result, "pageable", "breadth first", 64, 2, {8});
  add(result, "pinned", "depth first", 64, 1, {2});  // the same in both orders
  EXPECT_THAT(judge_order(result), IsEmpty());
  add_pair(result, 64, 2, {4}, {8});
  result.rows.back().checked = Checked::kWrong;
  EXPECT_THAT(judge_order(result), IsEmpty());
  add_pair(result, 64, 4, {4}, {4});
  EXPECT_THAT(judge_order(result), HasSubstr("; in none of 1 pairs "));
}

TEST(CopyEnginesVerdictTest, SaysWhatSoManyDoAtOnce) {
  const Result unmeasured;
  EXPECT_EQ(judge_copy_engines(0, unmeasured),
            "no copy engine: nothing is copied while a kernel runs");
  EXPECT_EQ(judge_copy_engines(1, unmeasured),
            "1 copy engine: copies run beside a kernel, but up and down one after the other");
  EXPECT_EQ(judge_copy_engines(2, unmeasured),
            "2 copy engines: copies up, copies down and a kernel run at once");
  EXPECT_THAT(judge_copy_engines(3, unmeasured), StartsWith("3 copy engines: copies up, "));
}

TEST(CopyEnginesVerdictTest, StandsBesideWhatWasMeasured) {
  Result result;
  result.rows = {{.name = kUploadAlone, .samples = {4}}, {.name = kDownloadAlone, .samples = {5}}};
  EXPECT_THAT(judge_copy_engines(2, result), Not(HasSubstr("both ways at once")));
  result.rows.push_back({.name = kBothWaysAtOnce, .samples = {6}});
  EXPECT_THAT(judge_copy_engines(2, result),
              HasSubstr("; both ways at once take 1.20 times what the longer way alone takes"));
}

}  // namespace
}  // namespace framelane::bench
