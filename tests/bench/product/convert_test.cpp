#include <gmock/gmock.h>

#include "bench/harness/ceilings.hpp"
#include "bench/harness/suite.hpp"
#include "bench/product/convert_frames.hpp"
#include "pipeline/frames/host_buffer.hpp"
#include "tests/bench/session.hpp"

namespace framelane::bench {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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

TEST(ConvertFramesTest, ManyFramesTakeNoMoreLockedMemoryThanOne) {
  const std::size_t before = host_memory_bytes();
  const ConvertFrames one(256, 1024, 1);
  const std::size_t of_one = host_memory_bytes() - before;
  const ConvertFrames many(256, 1024, 4);
  EXPECT_LE(host_memory_bytes() - before - of_one, of_one + of_one / 8);
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
  ASSERT_EQ(result.rows.size(), 1u + 4);
  EXPECT_EQ(result.rows[0].name, kCopyingAlone);  // the ceiling is first
  EXPECT_EQ(result.rows[0].bytes, result.rows[1].bytes);
  for (const Row& row : result.rows) {
    EXPECT_EQ(row.samples.size(), 2u) << row.name;
    EXPECT_EQ(row.checked, Checked::kRight) << row.name;
  }
  EXPECT_THAT(result.verdict, Contains(HasSubstr(" times what copying as many bytes takes, ")));
  EXPECT_THAT(result.left_out, ::testing::Contains("the GPU: no GPU in this test"));
}

}  // namespace
}  // namespace framelane::bench
