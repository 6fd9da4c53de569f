#include "tune/choice.hpp"

#include <gmock/gmock.h>

#include <optional>

namespace framelane::bench {
namespace {

using Why = Pick::Why;

/// Rounds of which each is slower or faster as a whole, by the noise of its machine.
std::vector<double> rounds(double milliseconds) {
  std::vector<double> samples;
  for (const double round : {1.0, 1.3, 0.9, 1.1, 1.05}) samples.push_back(milliseconds * round);
  return samples;
}

TEST(IsSlowerTest, WhatSlowsWholeRoundsSlowsNobodyMoreThanAnother) {
  EXPECT_FALSE(is_slower(rounds(1), rounds(1), kMostRounds));
  EXPECT_FALSE(is_slower(rounds(1.015), rounds(1), kMostRounds));
  EXPECT_TRUE(is_slower(rounds(1.03), rounds(1), kMostRounds));
  EXPECT_NEAR(times_longer(rounds(1.03), rounds(1)), 1.03, 1e-9);
}

TEST(IsSlowerTest, WhoWinsAThirdOfTheRoundsCannotBeToldApart) {
  EXPECT_FALSE(is_slower({1.05, 1.05, 1.05, 0.98, 0.99}, {1, 1, 1, 1, 1}, kMostRounds));
  EXPECT_TRUE(is_slower({1.05, 1.05, 1.05, 1.05, 0.99}, {1, 1, 1, 1, 1}, kMostRounds));
}

TEST(IsSlowerTest, RoundsThatOneOfThemWasNotInDoNotCount) {
  EXPECT_FALSE(is_slower({1, 1, 9}, {1, 1}, kMostRounds));
}

TEST(PickTest, TheDefaultIsKeptWhereNothingIsBetter) {
  const std::vector<Tried> tried{{1, rounds(2)}, {3, rounds(1.01)}, {6, rounds(1)}};
  const Pick picked = pick(tried, 3, std::nullopt);
  EXPECT_EQ(picked.value, 3);
  EXPECT_EQ(picked.why, Why::kDefault);
  EXPECT_EQ(picked.best, 6);
  EXPECT_NEAR(picked.longer, 1.01, 1e-9);
}

TEST(PickTest, TheDefaultHasToLoseNearlyEveryRound) {
  const std::vector<double> best(10, 1);
  const std::vector<double> loses_eight{1.1, 1.1, 1.1, 1.1, 1.1, 1.1, 1.1, 1.1, 0.9, 0.9};
  const std::vector<double> loses_all(10, 1.1);
  EXPECT_EQ(pick(std::vector<Tried>{{3, loses_eight}, {4, best}}, 3, {}).value, 3);
  EXPECT_EQ(pick(std::vector<Tried>{{2, loses_eight}, {4, best}}, 3, {}).value, 4);
  EXPECT_EQ(pick(std::vector<Tried>{{3, loses_all}, {4, best}}, 3, {}).value, 4);
}

TEST(PickTest, OtherwiseTheFewestThatAreAsGoodAsAny) {
  const std::vector<Tried> tried{
      {1, rounds(2)}, {3, rounds(1.2)}, {4, rounds(1.01)}, {6, rounds(1)}, {8, rounds(1)}};
  const Pick picked = pick(tried, 3, std::nullopt);
  EXPECT_EQ(picked.value, 4);
  EXPECT_EQ(picked.why, Why::kFewest);
  EXPECT_NEAR(picked.default_longer, 1.2, 1e-9);
}

TEST(PickTest, WhatIsSetStaysWhereItIsAsGood) {
  const std::vector<Tried> tried{
      {3, rounds(1.2)}, {4, rounds(1.01)}, {6, rounds(1)}, {8, rounds(1)}, {12, rounds(1)}};
  for (const int set : {4, 6, 12}) {
    EXPECT_EQ(pick(tried, 3, set).value, set);
    EXPECT_EQ(pick(tried, 3, set).why, Why::kPresent);
  }
}

TEST(PickTest, WhatIsSetStaysWhereItIsLessThanTheDefault) {
  const std::vector<Tried> tried{{1, rounds(1)}, {2, rounds(1)}, {3, rounds(1)}};
  EXPECT_EQ(pick(tried, 3, 2).value, 2);
  EXPECT_EQ(pick(tried, 3, 2).why, Why::kPresent);
  EXPECT_EQ(pick(tried, 3, std::nullopt).value, 3);
}

TEST(PickTest, WhatIsSetIsNoReasonToBeSlow) {
  const std::vector<Tried> tried{{1, rounds(2)}, {3, rounds(1)}, {64, rounds(1.1)}};
  EXPECT_EQ(pick(tried, 3, 1).value, 3);
  EXPECT_EQ(pick(tried, 3, 64).value, 3);
}

TEST(PickTest, ASecondRunAfterTheFirstGivesItsAnswerAgain) {
  const std::vector<Tried> first{{3, rounds(1.03)}, {4, rounds(1.01)}, {6, rounds(1)}};
  const int written = pick(first, 3, 3).value;
  EXPECT_EQ(written, 4);
  // This time the fewest are a little slower, as noise has it, but not to be told from the best.
  const std::vector<Tried> second{{3, rounds(1.03)}, {4, rounds(1.019)}, {6, rounds(1)}};
  EXPECT_EQ(pick(second, 3, written).value, written);
  // Or the default is a little faster.
  const std::vector<Tried> third{{3, rounds(1.019)}, {4, rounds(1.01)}, {6, rounds(1)}};
  EXPECT_EQ(pick(third, 3, std::nullopt).value, 3);
  EXPECT_EQ(pick(third, 3, written).value, written);
  EXPECT_EQ(pick(third, 3, written).why, Why::kPresent);
}

TEST(PickTest, SlicesThatAreSetStayWhereAutoIsAsGood) {
  const std::vector<Tried> first{{kAutoSlices, rounds(1.03)}, {1, rounds(1.3)}, {8, rounds(1)}};
  EXPECT_EQ(pick(first, kAutoSlices, kAutoSlices).value, 8);
  const std::vector<Tried> second{{kAutoSlices, rounds(1.01)}, {1, rounds(1.3)}, {8, rounds(1)}};
  EXPECT_EQ(pick(second, kAutoSlices, 8).value, 8);
  EXPECT_EQ(pick(second, kAutoSlices, 1).value, kAutoSlices);
}

TEST(PickTest, ASmallerRingThatIsSetStaysWhereItIsAsGood) {
  const std::vector<Tried> good{{4, rounds(1.01)}, {8, rounds(1)}};
  EXPECT_EQ(pick(good, 8, 4).value, 4);
  const std::vector<Tried> slow{{4, rounds(1.1)}, {8, rounds(1)}};
  EXPECT_EQ(pick(slow, 8, 4).value, 8);
}

TEST(PickTest, AutoIsTheDefaultOfSlices) {
  const std::vector<Tried> alike{{kAutoSlices, rounds(1)}, {1, rounds(1.3)}, {8, rounds(0.99)}};
  EXPECT_EQ(pick(alike, kAutoSlices, std::nullopt).value, kAutoSlices);
  const std::vector<Tried> better{{kAutoSlices, rounds(1.1)}, {1, rounds(1.3)}, {8, rounds(1)}};
  EXPECT_EQ(pick(better, kAutoSlices, std::nullopt).value, 8);
}

TEST(PickTest, WithoutAMeasurementItIsTheDefault) {
  const std::vector<Tried> none{{3, {}}, {4, {}}};
  EXPECT_EQ(pick(none, 3, 4).value, 3);
  EXPECT_EQ(pick(none, 3, 4).why, Why::kOnlyOne);
  const std::vector<Tried> no_default{{3, {}}, {4, rounds(1)}};
  EXPECT_EQ(pick(no_default, 3, std::nullopt).value, 4);
}

TEST(StandingTest, WhoIsSlowerThanNoiseIsNotAsGood) {
  const std::vector<std::vector<double>> samples{rounds(1.03), rounds(1.01), rounds(1), {}};
  const Standing slow = standing(samples, 0);
  EXPECT_EQ(slow.best, 2u);
  EXPECT_NEAR(slow.longer, 1.03, 1e-9);
  EXPECT_FALSE(slow.is_as_good);
  const Standing good = standing(samples, 1);
  EXPECT_EQ(good.best, 2u);
  EXPECT_NEAR(good.longer, 1.01, 1e-9);
  EXPECT_TRUE(good.is_as_good);
  EXPECT_EQ(standing(samples, 2).best, 2u);
  EXPECT_EQ(standing(samples, 2).longer, 1);
  EXPECT_TRUE(standing(samples, 2).is_as_good);
}

TEST(StandingTest, TheFastestIsTheOneOfTheSameRounds) {
  // Only in the rounds that were slow for all: no reason to be the slower one.
  const std::vector<std::vector<double>> samples{{2, 2, 1}, {1.9, 1.9, 0.99}, {2, 1, 1}};
  const Standing found = standing(samples, 0);
  EXPECT_EQ(found.best, 1u);
  EXPECT_NEAR(found.longer, 2 / 1.9, 1e-9);
}

TEST(CeilingTest, FeedsThatDoNotFitWholeDoNotCount) {
  const Ceiling ceiling = ceiling_of({.frames_per_second = 179.9, .rate = 60});
  EXPECT_EQ(ceiling.feeds, 2);
  EXPECT_EQ(ceiling.bound, Ceiling::Bound::kFrames);
  EXPECT_EQ(ceiling_of({.frames_per_second = 20, .rate = 60}).feeds, 0);
}

TEST(CeilingTest, MemoryMayBeTheLimit) {
  Needs needs{.frames_per_second = 6000,
              .rate = 60,
              .device_bytes = 30,
              .device_free = 1000,
              .host_bytes = 100,
              .host_free = 5000};
  EXPECT_EQ(ceiling_of(needs).feeds, 33);
  EXPECT_EQ(ceiling_of(needs).bound, Ceiling::Bound::kDeviceMemory);
  needs.host_free = 1000;
  EXPECT_EQ(ceiling_of(needs).feeds, 10);
  EXPECT_EQ(ceiling_of(needs).bound, Ceiling::Bound::kHostMemory);
}

TEST(DeviceTest, AGpuThatCarriesAllLeavesTheCpuToOthers) {
  const std::vector<Share> cpu{{900, 9000}};
  EXPECT_EQ(choose_device(std::vector<Share>{{900, 1100}}, cpu), Chosen::kOnGpu);
  EXPECT_EQ(choose_device(std::vector<Share>{{900, 950}}, cpu), Chosen::kOnCpu);
  // A tenth is not looked for twice with another result.
  EXPECT_EQ(choose_device(std::vector<Share>{{900, 950}}, cpu, Chosen::kOnGpu), Chosen::kOnGpu);
  EXPECT_EQ(choose_device(std::vector<Share>{{900, 1050}}, cpu, Chosen::kOnCpu), Chosen::kOnCpu);
  EXPECT_EQ(choose_device(std::vector<Share>{{900, 1150}}, cpu, Chosen::kOnCpu), Chosen::kOnGpu);
}

TEST(DeviceTest, WhereTheGpuDoesNotCarryAllTheOneThatHasMoreLeftIsChosen) {
  const std::vector<Share> gpu{{600, 6000}, {300, 300}};  // 1.1
  const std::vector<Share> cpu{{600, 1000}, {300, 900}};  // 0.93
  EXPECT_EQ(choose_device(gpu, cpu), Chosen::kOnCpu);
  EXPECT_EQ(choose_device({gpu.data(), 1}, {cpu.data(), 1}), Chosen::kOnGpu);
  EXPECT_EQ(choose_device(gpu, gpu), Chosen::kOnGpu);
  EXPECT_NEAR(load(gpu), 1.1, 1e-9);
}

TEST(DeviceTest, TheOneThatIsSetStaysWhereTheyAreAlike) {
  const std::vector<Share> fast{{9000, 6000}}, alike{{9000, 5900}}, slow{{9000, 5800}};
  EXPECT_EQ(choose_device(fast, alike, Chosen::kOnCpu), Chosen::kOnCpu);
  EXPECT_EQ(choose_device(alike, fast, Chosen::kOnGpu), Chosen::kOnGpu);
  EXPECT_EQ(choose_device(alike, fast), Chosen::kOnCpu);
  EXPECT_EQ(choose_device(fast, slow, Chosen::kOnCpu), Chosen::kOnGpu);
  EXPECT_EQ(choose_device(slow, fast, Chosen::kOnGpu), Chosen::kOnCpu);
}

TEST(DeviceTest, OneThatCannotDoAKindOfFeedIsNone) {
  const std::vector<Share> good{{60, 100}, {30, 100}};
  const std::vector<Share> bad{{60, 6000}, {30, 0}};
  EXPECT_EQ(choose_device(bad, good), Chosen::kOnCpu);
  EXPECT_EQ(choose_device(good, bad), Chosen::kOnGpu);
  EXPECT_EQ(choose_device(bad, bad), Chosen::kNeither);
  EXPECT_EQ(choose_device({}, good), Chosen::kOnCpu);
  EXPECT_EQ(choose_device(good, {}), Chosen::kOnGpu);
  EXPECT_EQ(choose_device({}, {}), Chosen::kNeither);
}

TEST(YamlTest, WhatMostFeedsShareIsUnderDefaultsAndTheRestUnderTheFeeds) {
  const std::vector<NamedSettings> feeds{
      {"a", {4, 8, 2}}, {"b", {3, 8, kAutoSlices}}, {"c", {3, 8, kAutoSlices}}};
  EXPECT_EQ(as_yaml("cuda", feeds),
            "device: cuda\n"
            "defaults:\n  lanes: 3\n  ring: 8\n  slices: auto\n"
            "feeds:\n  a:\n    lanes: 4\n    slices: 2\n");
}

TEST(YamlTest, WhatAFeedSetsByItselfIsSetThere) {
  const std::vector<NamedSettings> feeds{
      {"a", {3, 8, kAutoSlices}, {.lanes = 6}},   // would stay at 6
      {"b", {3, 8, kAutoSlices}, {.lanes = 3}},   // has it already
      {"c", {4, 16, kAutoSlices}, {.ring = 16}},  // its ring is right, its lanes come from defaults
      {"d", {3, 8, kAutoSlices}, {.slices = 4}}};
  EXPECT_EQ(as_yaml("cpu", feeds),
            "device: cpu\n"
            "defaults:\n  lanes: 3\n  ring: 8\n  slices: auto\n"
            "feeds:\n  a:\n    lanes: 3\n  c:\n    lanes: 4\n  d:\n    slices: auto\n");
}

}  // namespace
}  // namespace framelane::bench
