#include "bench/experiments/kernels_verdict.hpp"

#include <gmock/gmock.h>

namespace framelane::bench {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;

constexpr Multiprocessors kH100{132, 2048};

/// Times of 1, 2, 4 ... kernels at once.
Series series_of_times(const std::vector<double>& times) {
  Series series{"1024 threads", {}};
  double kernels = 1;
  for (const double time : times) {
    series.points.push_back({kernels, time, time, time});
    kernels *= 2;
  }
  return series;
}

TEST(KernelRoomTest, IsTheMultiprocessorsBlocksAndTheirResidentThreads) {
  const KernelRoom small = room_for({1024, 128}, kH100);
  EXPECT_EQ(small.one_block_each, 16);  // of 8 blocks each: 128 of 132 multiprocessors
  EXPECT_EQ(small.resident, 132 * 2048 / 1024);
  const KernelRoom large = room_for({2048, 128}, kH100);
  EXPECT_EQ(large.one_block_each, 8);
  EXPECT_EQ(large.resident, 132);
}

TEST(KernelRoomTest, ThreadsThatFillNoWholeBlockAreNoRoom) {
  EXPECT_EQ(room_for({1024, 512}, {4, 1536 + 256}).resident, 4 * 1536 / 1024);
}

TEST(KernelRoomTest, AKernelMayBeMoreThanOneBlockForEachMultiprocessor) {
  EXPECT_EQ(room_for({2048, 128}, {10, 1024}).one_block_each, 0);
  EXPECT_EQ(room_for({2048, 128}, {10, 1024}).resident, 5);
}

TEST(BlocksEachTest, AreThoseOfTheFullestMultiprocessor) {
  EXPECT_EQ(blocks_each(1, {1024, 128}, kH100), 1);
  EXPECT_EQ(blocks_each(16, {1024, 128}, kH100), 1);
  EXPECT_EQ(blocks_each(17, {1024, 128}, kH100), 2);
  EXPECT_EQ(blocks_each(33, {1024, 128}, kH100), 2);  // 264 blocks
  EXPECT_EQ(blocks_each(34, {1024, 128}, kH100), 3);
  EXPECT_EQ(blocks_each(128, {2048, 128}, kH100), 16);
}

TEST(FlatnessTest, EndsBeforeTheFirstNumberThatTakesATenthMore) {
  const std::string sentence =
      judge_flatness(series_of_times({10, 9, 10, 10, 10.5, 10.9, 15, 30}), {1024, 128}, kH100);
  EXPECT_EQ(sentence,
            "1024 threads, in blocks of 128: up to 32 kernels (2 on a multiprocessor) the time is "
            "at most 10 % more than of 1, of 64 kernels (4 on a multiprocessor) 1.50 times as "
            "long, of 128 kernels (8 on a multiprocessor) 3.00 times as long; no multiprocessor "
            "has more than one block up to 16 kernels, and all of their threads are resident up to "
            "264");
}

TEST(FlatnessTest, WhatIsFasterAgainLaterDoesNotMoveItsEnd) {
  EXPECT_THAT(judge_flatness(series_of_times({10, 12, 10}), {1024, 128}, kH100),
              AllOf(HasSubstr(": up to 1 kernel (1 on a multiprocessor) the time is at most "),
                    HasSubstr(", of 2 kernels (1 on a multiprocessor) 1.20 times "),
                    HasSubstr(", of 4 kernels (1 on a multiprocessor) 1.00 times ")));
}

TEST(FlatnessTest, WhatIsFlatToTheLastIsSaidOnce) {
  EXPECT_THAT(judge_flatness(series_of_times({10, 10, 10.5}), {2048, 128}, kH100),
              AllOf(HasSubstr(": up to 4 kernels (1 on a multiprocessor) the time is at most 10 % "
                              "more than of 1; "),
                    HasSubstr(" up to 8 kernels, "), EndsWith(" up to 132")));
}

TEST(FlatnessTest, WhereTheLastIsTheFirstThatTakesLongerItIsSaidOnce) {
  EXPECT_THAT(
      judge_flatness(series_of_times({10, 10, 20}), {2048, 128}, kH100),
      HasSubstr("more than of 1, of 4 kernels (1 on a multiprocessor) 2.00 times as long; "));
}

}  // namespace
}  // namespace framelane::bench
