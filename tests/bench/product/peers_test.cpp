#include "bench/product/peers.hpp"

#include <gmock/gmock.h>

#include "bench/harness/ceilings.hpp"
#include "bench/harness/suite.hpp"
#include "bench/product/simd_levels.hpp"
#include "kernels/reference.hpp"
#include "tests/bench/session.hpp"

namespace framelane::bench {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(PeersSuiteTest, OnTheCpuOursIsExactAndTheOthersAreMeasured) {
  const Result result = run_suite(*find_suite("peers"), cpu_session());
  EXPECT_THAT(result.problems, IsEmpty());
  int copies = 0, ours = 0;
  for (const Row& row : result.rows) {
    EXPECT_EQ(row.samples.size(), 2u) << row.name;
    if (row.name == kCopyingAlone) {
      ++copies;
      EXPECT_EQ(row.checked, Checked::kRight);
      continue;
    }
    ASSERT_TRUE(row.median_of("off")) << row.name;
    if (row.name != "reference" && !row.name.starts_with("framelane, ")) continue;
    if (row.name == "framelane, one core") ++ours;
    EXPECT_EQ(row.checked, Checked::kRight);
    EXPECT_EQ(row.median_of("off"), 0);
  }
  EXPECT_EQ(ours, 19);
  EXPECT_EQ(copies, 19);
  EXPECT_EQ(result.rows[0].name, kCopyingAlone);
  for (const char* name : {"reference", "framelane, past the caches",
                           "framelane, one core, one frame again and again"}) {
    EXPECT_NE(result.measured(name, {{"formats", "bgra to nv12"}}), nullptr) << name;
  }
  for (const SimdLevel& level : lower_simd_levels()) {
    const std::string name = std::string("framelane, ") + level.name;
    EXPECT_NE(result.measured(name, {{"formats", "yuyv422 to yuv422p"}}), nullptr) << name;
  }
  const Row* swscale = result.measured("swscale", {{"formats", "bgra to yuv420p"}});
  ASSERT_NE(swscale, nullptr);
  EXPECT_GT(*swscale->median_of("off"), 0);
  EXPECT_LT(*swscale->median_of("off"), 100);
  EXPECT_EQ(result.measured("libyuv", {{"formats", "bgra to nv12"}}) != nullptr, has_libyuv());
  EXPECT_EQ(result.measured("libyuv", {{"formats", "yuv420p to yuv420p, bt601 to bt709"}}),
            nullptr);
  EXPECT_EQ(result.measured("libyuv", {{"formats", "uyvy422 to nv12"}}) != nullptr, has_libyuv());
  EXPECT_THAT(result.left_out, Contains("NPP and the GPU: no GPU in this test"));
  EXPECT_THAT(result.verdict,
              Contains(AllOf(HasSubstr("37x23 bgra to nv12: framelane, one core is "),
                             HasSubstr(", and takes "),
                             HasSubstr(" times what copying as many bytes takes, "))));
}

TEST(PeerFramesTest, AWrongByteFailsWhatMustBeExactAndIsMeasuredOfOthers) {
  const Conversion conversion{16,
                              8,
                              PixelFormat::kBgra,
                              {.matrix = Matrix::kRgb, .range = Range::kFull},
                              PixelFormat::kI420,
                              {.matrix = Matrix::kBt601}};
  PeerFrames frames(conversion);
  const auto wrong = [&](const ConstImageView& source, const ImageView& target) {
    convert_reference(conversion, source, target);
    target.row(2, 3)[7] ^= 4;
  };
  Result result;
  take_turns(
      cpu_session(),
      {frames.contender("ours", "", wrong, true), frames.contender("theirs", "", wrong, false)},
      result);
  EXPECT_THAT(result.problems,
              ElementsAre(HasSubstr("wrong result of ours, formats bgra to yuv420p, size 16x8: "
                                    "frame 0, plane 2, row 3, byte 7 is ")));
  EXPECT_EQ(result.rows[0].checked, Checked::kWrong);
  EXPECT_NEAR(result.rows[1].median_of("off").value_or(0), 100.0 / (16 * 8 * 3 / 2), 1e-9);
  EXPECT_EQ(result.rows[1].median_of("off by"), 4);
}

TEST(CpuPeersTest, ZimgScalesPlanesOfWholeSamplesOfChroma) {
  PeerPair pair{.source = PixelFormat::kI420, .target = PixelFormat::kI420, .part = {2, 3}};
  const Conversion conversion = pair.at({"", 384, 192});
  ASSERT_EQ(make_zimg(conversion) != nullptr, has_zimg());
  if (!has_zimg()) GTEST_SKIP() << "built without zimg";
  EXPECT_EQ(make_zimg(pair.at({"", 37, 23})), nullptr);
  pair.target = PixelFormat::kNv12;
  EXPECT_EQ(make_zimg(pair.at({"", 384, 192})), nullptr);
  PeerFrames frames(conversion);
  Result result;
  take_turns(cpu_session(), {frames.contender("zimg", "", make_zimg(conversion), false)}, result);
  const Row* row = result.measured("zimg", {});
  ASSERT_NE(row, nullptr);
  EXPECT_GT(*row->median_of("off"), 0);
  EXPECT_LT(*row->median_of("off"), 10);
  EXPECT_LT(*row->median_of("off by"), 32);
}

TEST(PeerFramesTest, OneFrameAgainAndAgainIsTheOnlyOneChecked) {
  PeerFrames frames(conversion(PixelFormat::kBgra, PixelFormat::kNv12, {"", 16, 8}));
  ASSERT_GT(frames.count(), 1u);
  int calls = 0;
  const Contender contender = frames.contender(
      "ours", "",
      [&](const ConstImageView& source, const ImageView& target) {
        ++calls;
        convert_reference(frames.conversion, source, target);
      },
      true, 1);
  contender.prepare();
  contender.work();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(contender.check(), "");
}

TEST(SimdLevelsTest, EveryLevelGivesTheSameBytes) {
  const Conversion convert = conversion(PixelFormat::kBgra, PixelFormat::kI420, {"", 130, 6});
  FramePool pool;
  const PooledImage source = make_frames(pool, convert.source, {"", 130, 6}, 1).front();
  const PlainImage expected = reference_result(convert, as_const(source.image));
  const char* const own = Converter::make(convert)->name();
  for (const SimdLevel& level : lower_simd_levels()) {
    const PlainImage got(convert.target, 130, 6);
    make_converter(convert, Stores::kCached, level)->run(as_const(source.image), got.image, 0, 6);
    EXPECT_EQ(first_difference(as_const(expected.image), as_const(got.image)), "") << level.name;
  }
  EXPECT_STREQ(Converter::make(convert)->name(), own);  // the choice is taken back
}

TEST(PeerFramesTest, AFrameThatWasNotConvertedFails) {
  PeerFrames frames(conversion(PixelFormat::kBgra, PixelFormat::kNv12, {"", 16, 8}));
  Result result;
  take_turns(cpu_session(),
             {frames.contender(
                 "ours", "", [](const ConstImageView&, const ImageView&) {}, true)},
             result);
  EXPECT_THAT(result.problems, ElementsAre(HasSubstr("plane 0, row 0, byte 0 is 0 instead of ")));
}

}  // namespace
}  // namespace framelane::bench
