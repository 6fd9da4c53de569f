#include <gmock/gmock.h>

#include <cmath>

#include "bench/suites/convert_frames.hpp"
#include "bench/suites/device_code.hpp"
#include "bench/suites/suite.hpp"
#include "pipeline/cpu_stage.hpp"

namespace framelane::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Session cpu_session() {
  Session session;
  session.rounds = 2;
  session.seconds = 0;
  session.width = 37;
  session.height = 23;
  session.bytes = 4000;
  session.cpu = std::make_shared<CpuDevice>(1);
  session.no_gpu = "no GPU in this test";
  return session;
}

TEST(ClassicFormulaTest, RoundsDownAsPublished) {
  const auto down = [](double red, double green, double blue, double offset) {
    return static_cast<int>(std::floor((red + green + blue) / 256)) + static_cast<int>(offset);
  };
  for (int red = 0; red < 256; red += 5) {
    for (int green = 0; green < 256; green += 3) {
      for (int blue = 0; blue < 256; blue += 15) {
        const Yuv yuv = classic_yuv(red, green, blue);
        ASSERT_EQ(yuv.y, down(66.0 * red, 129.0 * green, 25.0 * blue, 16));
        ASSERT_EQ(yuv.u, down(-38.0 * red, -74.0 * green, 112.0 * blue, 128));
        ASSERT_EQ(yuv.v, down(112.0 * red, -94.0 * green, -18.0 * blue, 128));
      }
    }
  }
}

TEST(ConvertFramesTest, AFrameThatIsMistakenForAnotherIsSeen) {
  ConvertFrames frames(16, 8, 3);
  const PooledImage target = frames.make_target();
  for (int frame = 0; frame < 3; ++frame) {
    convert_classic(frames.source(frame), target.image);
    EXPECT_EQ(frames.compare(Formula::kClassic, frame, target.image), "");
    EXPECT_THAT(frames.compare(Formula::kClassic, (frame + 1) % 3, target.image),
                HasSubstr("row 0, byte "));
    EXPECT_NE(frames.compare(Formula::kExact, frame, target.image), "");
  }
}

TEST(ConvertFramesTest, AWrongByteIsNamed) {
  ConvertFrames frames(16, 8, 1);
  const PooledImage target = frames.make_target();
  convert_classic(frames.source(0), target.image);
  target.image.row(0, 7)[47] ^= 1;
  EXPECT_THAT(frames.compare(Formula::kClassic, 0, target.image),
              HasSubstr("frame 0, row 7, byte 47 is "));
  spoil(target.image);
  EXPECT_THAT(frames.compare(Formula::kClassic, 0, target.image), HasSubstr("row 0, byte 0 is 0 "));
}

TEST(ConvertSuiteTest, OnTheCpuItMeasuresWhatTheCpuCan) {
  const Result result = run_suite(*find_suite("convert"), cpu_session());
  EXPECT_THAT(result.problems, IsEmpty());
  ASSERT_EQ(result.rows.size(), 3u);
  for (const Row& row : result.rows) {
    EXPECT_EQ(row.samples.size(), 2u) << row.name;
    EXPECT_EQ(row.checked, Checked::kRight) << row.name;
  }
  EXPECT_THAT(result.left_out, ::testing::Contains("the GPU: no GPU in this test"));
}

TEST(VecaddSuiteTest, OnTheCpuItAddsOnOneCore) {
  const Result result = run_suite(*find_suite("vecadd"), cpu_session());
  EXPECT_THAT(result.problems, IsEmpty());
  ASSERT_EQ(result.rows.size(), 1u);
  EXPECT_EQ(result.rows[0].checked, Checked::kRight);
  EXPECT_THAT(result.left_out, ElementsAre("segments over streams: no GPU in this test"));
}

TEST(ReduceSuiteTest, OnTheCpuItAddsInTwoWays) {
  const Result result = run_suite(*find_suite("reduce"), cpu_session());
  EXPECT_THAT(result.problems, IsEmpty());
  ASSERT_EQ(result.rows.size(), 2u);
  for (const Row& row : result.rows) EXPECT_EQ(row.checked, Checked::kRight) << row.name;
}

TEST(ReduceSuiteTest, APictureWhoseSumWouldBeRoundedIsRefused) {
  Session session = cpu_session();
  session.width = 16384;
  session.height = 1025;
  EXPECT_THAT(run_suite(*find_suite("reduce"), session).problems,
              ElementsAre(HasSubstr("use a --size of ")));
}

TEST(GpuSuitesWithoutAGpuTest, TheySayThatTheyAreLeftOut) {
  for (const char* name : {"overlap", "kernels"}) {
    const Result result = run_suite(*find_suite(name), cpu_session());
    EXPECT_THAT(result.problems, IsEmpty()) << name;
    EXPECT_THAT(result.rows, IsEmpty()) << name;
    EXPECT_THAT(result.left_out, ElementsAre(HasSubstr("no GPU in this test"))) << name;
  }
}

}  // namespace
}  // namespace framelane::bench
