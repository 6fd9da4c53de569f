#include "tune/tune.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <nlohmann/json.hpp>

#include "bench/product/stage_feed.hpp"
#include "pipeline/stage/cpu_stage.hpp"
#include "tests/bench/product/spoiling_device.hpp"

namespace framelane::bench {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Session cpu_session() {
  Session session;
  session.rounds = 2;
  session.seconds = 0;
  session.cpu = std::make_shared<CpuDevice>(1);
  session.no_gpu = "no GPU in this test";
  return session;
}

FeedKind small_kind(std::vector<std::string> names) {
  FeedKind kind;
  kind.feeds = std::max(1, static_cast<int>(names.size()));
  kind.names = std::move(names);
  kind.conversions = {conversion(PixelFormat::kBgra, PixelFormat::kNv12, {"", 37, 23})};
  kind.rate = 25;
  return kind;
}

TEST(TuneTest, OnTheCpuItRecommendsWhatItHasMeasured) {
  const Session session = cpu_session();
  const std::vector<FeedKind> kinds{small_kind({"a", "b"}), small_kind({"c"})};
  const Tuning tuning = tune(session, false, kinds);
  EXPECT_THAT(tuning.measured.problems, IsEmpty());
  EXPECT_EQ(tuning.device, "cpu");
  EXPECT_EQ(tuning.device_reason, "no GPU in this test");
  ASSERT_EQ(tuning.kinds.size(), 2u);
  for (const TunedKind& tuned : tuning.kinds) {
    // There is a row for what is recommended, measured with as many feeds.
    EXPECT_NE(tuning.measured.measured("stage", {{"feeds", std::int64_t{tuned.kind.feeds}},
                                                 {"lanes", std::int64_t{tuned.settings.lanes}},
                                                 {"ring", std::int64_t{tuned.settings.ring}},
                                                 {"part", "ring"}}),
              nullptr);
    EXPECT_GE(tuned.settings.ring, kRing);
    EXPECT_EQ(tuned.settings.slices, kAutoSlices);
    EXPECT_GT(tuned.frames_per_second, 0);
    EXPECT_LE(tuned.ceiling.feeds, tuned.frames_per_second / tuned.kind.rate);
  }
  EXPECT_GT(tuning.load, 0);
  EXPECT_EQ(settings_of(tuning).size(), 3u);

  const std::string text = as_text(tuning);
  EXPECT_THAT(text, HasSubstr("a, b: 37x23 bgra to nv12, 25 frames/s\n"));
  EXPECT_THAT(text, HasSubstr("  device   cpu       no GPU in this test\n"));
  EXPECT_THAT(text, HasSubstr("\ndevice: cpu\ndefaults:\n  lanes: "));
  const auto json = nlohmann::json::parse(as_json(tuning));
  EXPECT_EQ(json.at("kinds").size(), 2u);
  EXPECT_EQ(json["kinds"][0].at("feeds"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(json["measured"]["rows"].size(), tuning.measured.rows.size());
}

TEST(TuneTest, ASourceThatIsLargerThanNeededIsNamed) {
  std::vector<FeedKind> kinds{small_kind({"a"}), small_kind({"b"})};
  kinds[0].conversions[0].scaling = Scaling{{0, 0, 37, 23}, {12, 6}, {0, 0, 12, 6}};
  kinds[0].advice = "decodes more than it shows";
  const Tuning tuning = tune(cpu_session(), false, kinds);
  EXPECT_THAT(tuning.measured.problems, IsEmpty());
  const std::string text = as_text(tuning);
  EXPECT_THAT(text, HasSubstr("a: 37x23 bgra to nv12 at 12x6, 25 frames/s\n"
                              "  input    too large decodes more than it shows\n  lanes "));
  EXPECT_EQ(text.find("too large"), text.rfind("too large"));
  const auto json = nlohmann::json::parse(as_json(tuning));
  EXPECT_EQ(json["kinds"][0].at("advice"), "decodes more than it shows");
}

TEST(TuneTest, FeedsThatNeedMoreThanThereIsAreToldSo) {
  std::vector<FeedKind> kinds{small_kind({"a"})};
  kinds[0].rate = 1e9;
  const Tuning tuning = tune(cpu_session(), false, kinds);
  ASSERT_EQ(tuning.kinds.size(), 1u);
  EXPECT_EQ(tuning.kinds[0].ceiling.feeds, 0);
  EXPECT_GT(tuning.load, 1);
  EXPECT_THAT(as_text(tuning), HasSubstr(": they cannot all run at their rate. Decoding "));
}

TEST(TuneTest, AWrongByteLeavesNothingToRecommend) {
  Session session = cpu_session();
  session.cpu = std::make_shared<SpoilingDevice>();
  const std::vector<FeedKind> kinds{small_kind({"a"})};
  const Tuning tuning = tune(session, false, kinds);
  EXPECT_THAT(tuning.kinds, IsEmpty());
  EXPECT_THAT(tuning.measured.problems, Contains(HasSubstr("wrong result of stage, ")));
  EXPECT_THAT(as_text(tuning), Not(HasSubstr("defaults:")));
}

TEST(TuneTest, AStopLeavesNothingToRecommend) {
  Session session = cpu_session();
  const std::atomic<int> stop{2};
  session.stop = &stop;
  const std::vector<FeedKind> kinds{small_kind({"a"})};
  const Tuning tuning = tune(session, false, kinds);
  EXPECT_THAT(tuning.kinds, IsEmpty());
  EXPECT_TRUE(tuning.measured.interrupted);
  EXPECT_THAT(as_text(tuning), HasSubstr("interrupted: "));
}

TEST(TuneTest, SettingsWithoutRoomAreNotRecommendedAndNoFault) {
  Session session = cpu_session();
  // A quarter holds one feed's 3 lanes and 8 places, and nothing larger.
  session.memory = 4 * std::size_t{3 + 8} * (37 * 23 + 2 * 19 * 12);
  const std::vector<FeedKind> kinds{small_kind({"a"})};
  const Tuning tuning = tune(session, false, kinds);
  EXPECT_THAT(tuning.measured.problems, IsEmpty());
  ASSERT_EQ(tuning.kinds.size(), 1u);
  EXPECT_LE(tuning.kinds[0].settings.lanes, 3);
  EXPECT_EQ(tuning.kinds[0].settings.ring, 8);
  EXPECT_EQ(tuning.kinds[0].ceiling.bound, Ceiling::Bound::kHostMemory);
  EXPECT_THAT(tuning.measured.left_out, Contains(HasSubstr("their frames are")));
}

TEST(TuneTest, FramesThatAreTooLargeAreOneLine) {
  Session session = cpu_session();
  session.memory = 10'000;
  const std::vector<FeedKind> kinds{small_kind({"a"})};
  const Tuning tuning = tune(session, false, kinds);
  EXPECT_THAT(tuning.kinds, IsEmpty());
  EXPECT_THAT(tuning.measured.problems, ElementsAre(HasSubstr("; ask for less with --size")));
}

TEST(TuneTest, WhatManyFeedsCarryTogetherIsMeasured) {
  std::vector<FeedKind> kinds{small_kind({"a"})};
  kinds[0].rate = 0.1;
  const Tuning tuning = tune(cpu_session(), false, kinds);
  ASSERT_EQ(tuning.kinds.size(), 1u);
  const Row* const row = tuning.measured.measured(
      "stage", {{"feeds", std::int64_t{64}}, {"part", "ceiling, the most feeds"}});
  ASSERT_NE(row, nullptr);
  EXPECT_LE(tuning.kinds[0].frames_per_second, 1e3 / row->median() * 1.0001);
  EXPECT_THAT(tuning.kinds[0].ceiling_reason, HasSubstr("with 64 feeds"));
}

TEST(TuneTest, ALargerRingAndSlicesThatAreSetStay) {
  std::vector<FeedKind> kinds{small_kind({"a"})};
  kinds[0].present = {3, 64, 4};
  Tuning tuning = tune(cpu_session(), false, kinds);
  EXPECT_THAT(tuning.measured.problems, IsEmpty());
  ASSERT_EQ(tuning.kinds.size(), 1u);
  EXPECT_EQ(tuning.kinds[0].settings.ring, 64);
  EXPECT_THAT(tuning.kinds[0].ring_reason, HasSubstr("as it is set"));
  EXPECT_EQ(tuning.kinds[0].settings.slices, 4);
  check_tuning(cpu_session(), tuning);
  EXPECT_EQ(
      tuning.measured.measured("stage", {{"ring", std::int64_t{8}}, {"part", "every setting"}}),
      nullptr);
  EXPECT_NE(
      tuning.measured.measured("stage", {{"ring", std::int64_t{64}}, {"part", "every setting"}}),
      nullptr);
}

TEST(TuneTest, ASmallerRingIsTriedOnlyWhereItIsSet) {
  std::vector<FeedKind> kinds{small_kind({"a"})};
  const auto smaller_rings = [](const Tuning& tuning) {
    std::vector<std::string> found;
    for (const Row& row : tuning.measured.rows) {
      for (int ring = 1; ring < kRing; ++ring) {
        if (row.is("stage", {{"ring", std::int64_t{ring}}})) found.push_back(std::to_string(ring));
      }
    }
    return found;
  };
  EXPECT_THAT(smaller_rings(tune(cpu_session(), false, kinds)), IsEmpty());
  kinds[0].present = {3, 4, kAutoSlices};
  const Tuning tuning = tune(cpu_session(), false, kinds);
  EXPECT_THAT(smaller_rings(tuning), ::testing::AllOf(Not(IsEmpty()), ::testing::Each("4")));
  ASSERT_EQ(tuning.kinds.size(), 1u);
  const int ring = tuning.kinds[0].settings.ring;
  EXPECT_TRUE(ring == 4 || ring >= kRing) << ring;
}

TEST(TuneTest, TheCheckGoesThroughEverySettingAndThenTheBest) {
  const Session session = cpu_session();
  const std::vector<FeedKind> kinds{small_kind({})};
  Tuning tuning = tune(session, false, kinds);
  ASSERT_EQ(tuning.kinds.size(), 1u);
  check_tuning(session, tuning);
  ASSERT_EQ(tuning.measured.verdict.size(), 1u);
  EXPECT_THAT(tuning.measured.verdict[0], HasSubstr("37x23 bgra to nv12: of "));
  // With frames this small and runs this short it may be slower or not; then it is said so.
  for (const std::string& problem : tuning.measured.problems) {
    EXPECT_THAT(problem, HasSubstr(", more than 1.02"));
  }
  int of_all = 0;
  int last = 0;
  for (const Row& row : tuning.measured.rows) {
    of_all += row.is("stage", {{"part", "every setting"}}) ? 1 : 0;
    last += row.is("stage", {{"part", "the best of every setting"}}) ? 1 : 0;
  }
  EXPECT_GE(of_all, 3 * 3);
  EXPECT_EQ(last, 4);
}

const std::string kPlain =
    R"({"target":"nv12","target_color":["bt709","limited","left"],"scaling":null,"overlaid":false})";

TEST(ConfiguredFeedsTest, FeedsThatAreAlikeAreOneKind) {
  const auto feed = [](const std::string& name, int width, int ring = 8) {
    return R"({"name":")" + name + R"(","width":)" + std::to_string(width) +
           R"(,"height":18,"source":"bgra","source_color":["rgb","full","left"],"conversions":[)" +
           kPlain +
           R"(],"rate":59.94,"assumed":"","advice":"why",)"
           R"("lanes":3,"ring":)" +
           std::to_string(ring) + R"(,"slices":0,"own":["ring"]})";
  };
  const ConfiguredFeeds feeds = configured_feeds(R"({"device":"cuda:1","feeds":[)" + feed("a", 32) +
                                                 "," + feed("b", 64) + "," + feed("c", 32) + "," +
                                                 feed("d", 32, 64) + R"(],"left_out":["d: why"]})");
  EXPECT_EQ(feeds.device, "cuda:1");
  EXPECT_THAT(feeds.left_out, ElementsAre("d: why"));
  ASSERT_EQ(feeds.kinds.size(), 3u);
  EXPECT_THAT(feeds.kinds[2].names, ElementsAre("d"));  // its ring may stay
  EXPECT_THAT(feeds.kinds[0].names, ElementsAre("a", "c"));
  EXPECT_EQ(feeds.kinds[0].feeds, 2);
  ASSERT_EQ(feeds.kinds[0].own.size(), 2u);
  EXPECT_EQ(feeds.kinds[0].own[1].ring, 8);
  EXPECT_EQ(feeds.kinds[0].own[1].lanes, std::nullopt);
  EXPECT_EQ(feeds.kinds[0].conversions.at(0).source_color.matrix, Matrix::kRgb);
  EXPECT_EQ(feeds.kinds[1].conversions.at(0).width, 64);
  EXPECT_EQ(feeds.kinds[1].present, (Settings{3, 8, kAutoSlices}));
}

/// A feed of these conversions.
std::string feeds_with(const std::string& conversions) {
  return R"({"device":"auto","left_out":[],"feeds":[{"name":"a","width":32,"height":18,)"
         R"("source":"bgra","source_color":["rgb","full","left"],"rate":25,"assumed":"","advice":"why","lanes":3,)"
         R"("ring":8,"slices":0,"own":[],"conversions":[)" +
         conversions + "]}]}";
}

const std::string kScaled =
    R"({"target":"yuv420p","target_color":["bt601","full","center"],"overlaid":true,"scaling":)"
    R"({"crop":[2,4,20,10],"target":[16,40],"place":[0,4,16,32],"filter":"area",)"
    R"("background":[16,32,255],"transposed":true,"mirrored":false,"upside_down":true}})";

TEST(ConfiguredFeedsTest, EachEncodeHasItsConversion) {
  const ConfiguredFeeds feeds = configured_feeds(feeds_with(kPlain + "," + kScaled));
  ASSERT_EQ(feeds.kinds.size(), 1u);
  ASSERT_EQ(feeds.kinds[0].conversions.size(), 2u);
  EXPECT_EQ(feeds.kinds[0].advice, "why");
  const Conversion& scaled = feeds.kinds[0].conversions[1];
  EXPECT_EQ(scaled.width, 32);
  EXPECT_EQ(scaled.source, PixelFormat::kBgra);
  EXPECT_EQ(scaled.target, PixelFormat::kI420);
  EXPECT_EQ(scaled.target_color.siting, Siting::kCenter);
  EXPECT_TRUE(scaled.overlaid);
  EXPECT_EQ(scaled.scaling,
            (Scaling{{2, 4, 20, 10},
                     {16, 40},
                     {0, 4, 16, 32},
                     ScaleFilter::kArea,
                     {16, 32, 255},
                     {.transposed = true, .mirrored = false, .upside_down = true}}));
  EXPECT_EQ(describe(feeds.kinds[0]),
            "32x18 bgra to nv12 at 32x18 + bgra to yuv420p at 16x40, 25 frames/s");
}

TEST(ConfiguredFeedsTest, AnotherTextIsRefusedWithTheReason) {
  const auto refused = [](const std::string& text, const std::string& why) {
    EXPECT_THAT([&] { configured_feeds(text); },
                ::testing::ThrowsMessage<std::runtime_error>(::testing::AllOf(
                    HasSubstr("what framelane tune-feeds says is not what"), HasSubstr(why))))
        << text;
  };
  const auto with = [](std::string text, const std::string& what, const std::string& instead) {
    const std::size_t at = text.find(what);
    EXPECT_NE(at, std::string::npos);
    return text.replace(at, what.size(), instead);
  };
  refused("", "parse error");
  refused("{}", "device");
  refused(feeds_with(""), "a has no conversion");
  refused(feeds_with("{}"), "target");
  refused(feeds_with(with(kPlain, "nv12", "nv13")), "nv13 is not known");
  refused(feeds_with(with(kPlain, "bt709", "bt79")), "bt79 is not known");
  refused(feeds_with(with(kPlain, "null", "7")), "number");
  refused(feeds_with(with(kPlain, "nv12", "bgra")), "bgra");
  refused(feeds_with(with(kScaled, "area", "lanczos")), "lanczos is not known");
  refused(feeds_with(with(kScaled, "[2,4,20,10]", "[2,4,20,15]")), "crop");
  refused(feeds_with(with(kScaled, "[2,4,20,10]", "[2,4,20]")), "3");
  refused(feeds_with(with(kScaled, "true", "\"yes\"")), "boolean");
}

}  // namespace
}  // namespace framelane::bench
