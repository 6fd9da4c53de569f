#include <gmock/gmock.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <optional>
#include <tuple>
#include <utility>

#include "bench/stage_feed.hpp"
#include "bench/suites/ceilings.hpp"
#include "bench/suites/convert_frames.hpp"
#include "bench/suites/device_code.hpp"
#include "bench/suites/luma.hpp"
#include "bench/suites/peers.hpp"
#include "bench/suites/simd_loops.hpp"
#include "bench/suites/suite.hpp"
#include "kernels/reference.hpp"
#include "pipeline/base/failure.hpp"
#include "pipeline/frames/host_buffer.hpp"
#include "pipeline/stage/cpu_stage.hpp"
#include "tests/bench/spoiling_device.hpp"

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
using ::testing::StartsWith;

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

TEST(SimdLoopsTest, TheClassicFormulaGivesTheSameBytesAtEveryWidth) {
  // Up to some of the widest vectors of pixels, with every remainder.
  for (int width = 1; width <= 3 * 64 + 1; ++width) {
    FramePool pool;
    const std::vector<PooledImage> source =
        make_frames(pool, PixelFormat::kBgra, {"", width, 3}, 1);
    const PlainImage plain(PixelFormat::kYuv444, width, 3);
    const PlainImage simd(PixelFormat::kYuv444, width, 3);
    convert_classic(as_const(source[0].image), plain.image);
    convert_classic_simd(as_const(source[0].image), simd.image);
    // Whole rows with what lies behind their pixels, which nobody may write.
    for (int y = 0; y < 3; ++y) {
      ASSERT_EQ(std::memcmp(plain.image.row(0, y), simd.image.row(0, y),
                            static_cast<std::size_t>(plain.image.planes[0].pitch)),
                0)
          << "row " << y << " of " << width << " pixels";
    }
  }
}

TEST(SimdLoopsTest, TheClassicFormulaHoldsAtTheEndsOfEveryChannel) {
  constexpr int kValues[] = {0, 1, 127, 128, 254, 255};
  constexpr int kWidth = 6 * 6 * 6;
  std::vector<std::uint8_t> bgra, expected, got(kWidth * 3);
  for (const int red : kValues) {
    for (const int green : kValues) {
      for (const int blue : kValues) {
        for (const int channel : {blue, green, red, 255}) {
          bgra.push_back(static_cast<std::uint8_t>(channel));
        }
        const Yuv yuv = classic_yuv(red, green, blue);
        expected.insert(expected.end(), {yuv.y, yuv.u, yuv.v});
      }
    }
  }
  convert_classic_simd({PixelFormat::kBgra, kWidth, 1, {{{bgra.data(), kWidth * 4}}}},
                       {PixelFormat::kYuv444, kWidth, 1, {{{got.data(), kWidth * 3}}}});
  EXPECT_EQ(got, expected);
}

TEST(SimdLoopsTest, EveryNumberIsAddedOnce) {
  std::vector<float> numbers(150);
  float expected = 0;
  for (std::size_t count = 0; count < numbers.size(); ++count) {
    EXPECT_EQ(sum_floats(numbers.data(), count), expected) << count;
    numbers[count] = static_cast<float>(count * 7 % 61) + 1;
    expected += numbers[count];
  }
}

TEST(SimdLoopsTest, EveryWordIsReadOnce) {
  std::vector<std::uint32_t> words(150);
  std::uint32_t expected = 0;
  for (std::size_t count = 0; count < words.size(); ++count) {
    EXPECT_EQ(read_words(words.data(), count), expected) << count;
    words[count] = static_cast<std::uint32_t>(count) * 2654435761U + 1;
    expected ^= words[count];
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

TEST(ConvertFramesTest, ManyFramesTakeNoMoreLockedMemoryThanOne) {
  const std::size_t before = host_buffer_bytes();
  const ConvertFrames one(256, 1024, 1);
  const std::size_t of_one = host_buffer_bytes() - before;
  const ConvertFrames many(256, 1024, 4);
  EXPECT_LE(host_buffer_bytes() - before - of_one, of_one + of_one / 8);
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

TEST(CopyingAloneTest, MovesHalfOfTheBytesOfAllWorksAndMissesNone) {
  constexpr std::size_t kWorks = 3;
  const std::size_t before = host_buffer_bytes();
  {
    const Contender copying = copying_alone({{"size", "1x1"}}, 4'000'000, kWorks);
    const std::size_t taken = host_buffer_bytes() - before;
    EXPECT_GE(taken, kWorks * 4'000'000);
    EXPECT_LT(taken, kWorks * 4'000'000 + 200'000);  // whole pages
    EXPECT_EQ(copying.row.bytes, 4'000'000);
    EXPECT_TRUE(copying.row.is(kCopyingAlone, {{"size", "1x1"}}));
    copying.prepare();
    EXPECT_THAT(copying.check(), HasSubstr(" is 0 instead of "));
    EXPECT_GT(copying.work(), 0);
    EXPECT_EQ(copying.check(), "");
    copying.prepare();
    EXPECT_NE(copying.check(), "");
  }
  EXPECT_EQ(host_buffer_bytes(), before);
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

TEST(VecaddSuiteTest, OnTheCpuItAddsOnOneCore) {
  const Result result = run_suite(*find_suite("vecadd"), cpu_session());
  EXPECT_THAT(result.problems, IsEmpty());
  ASSERT_EQ(result.rows.size(), 2u);
  EXPECT_EQ(result.rows[0].name, kCopyingAlone);
  EXPECT_EQ(result.rows[0].bytes, result.rows[1].bytes);
  for (const Row& row : result.rows) EXPECT_EQ(row.checked, Checked::kRight) << row.name;
  EXPECT_THAT(result.verdict, ElementsAre(AllOf(StartsWith("one core takes "),
                                                HasSubstr(" times what copying as many bytes "))));
  EXPECT_THAT(result.left_out, ElementsAre("segments over streams: no GPU in this test"));
}

TEST(ReduceSuiteTest, OnTheCpuItAddsInThreeWaysBesideReadingAloneAndCountsLuma) {
  const Result result = run_suite(*find_suite("reduce"), cpu_session());
  EXPECT_THAT(result.problems, IsEmpty());
  ASSERT_EQ(result.rows.size(), 4u + 2);
  for (const Row& row : result.rows) EXPECT_EQ(row.checked, Checked::kRight) << row.name;
  EXPECT_EQ(result.rows[0].name, "CPU, reading alone");  // the ceiling is first
  EXPECT_TRUE(result.rows[5].is("CPU, BGRA to NV12 and luma", {{"size", "37x23"}}));
  EXPECT_THAT(result.verdict, Contains(HasSubstr(" times what reading the picture takes, which ")));
}

TEST(LumaWorkTest, AWrongByteIsSeenAndAWrongCount) {
  LumaWork work(cpu_session(), 37, 23);
  const std::vector<Contender> contenders = work.contenders();
  ASSERT_EQ(contenders.size(), 2u);
  const auto& [plain, counting] = std::tie(contenders[0], contenders[1]);
  counting.prepare();
  counting.work();
  EXPECT_EQ(counting.check(), "");
  counting.prepare();
  EXPECT_THAT(counting.check(), HasSubstr("row 0, byte 0 is 0 instead of "));
  plain.work();
  EXPECT_EQ(plain.check(), "");
  EXPECT_EQ(counting.check(), "its luma is counted wrongly");
}

TEST(ReduceSuiteTest, APictureWhoseSumWouldBeRoundedIsRefused) {
  Session session = cpu_session();
  session.width = 16384;
  session.height = 1025;
  EXPECT_THAT(run_suite(*find_suite("reduce"), session).problems,
              ElementsAre(HasSubstr("use a --size of ")));
}

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

TEST(MemoryTest, WhatNeedsMoreThanThereIsIsNotBegun) {
  Session session = cpu_session();
  session.bytes = 400'000;
  session.memory = 4 * 37 * 23;
  for (const auto& [name, option] :
       {std::pair("convert", "--size"), std::pair("peers", "--size"), std::pair("stage", "--size"),
        std::pair("vecadd", "--bytes")}) {
    const Result result = run_suite(*find_suite(name), session);
    EXPECT_THAT(result.rows, IsEmpty()) << name;
    EXPECT_THAT(result.problems, Not(IsEmpty())) << name;
    EXPECT_THAT(
        result.problems,
        Each(AllOf(HasSubstr("needs "), EndsWith(std::string("; ask for less with ") + option))))
        << name;
  }
}

TEST(MemoryTest, ThreeQuartersMayBeTaken) {
  Session session = cpu_session();
  session.memory = std::size_t{4} << 20;
  EXPECT_NO_THROW(require_memory(session, 3 << 20, "--bytes"));
  EXPECT_THAT([&] { require_memory(session, (4 << 20) - 1, "--bytes"); },
              ::testing::ThrowsMessage<NoRoom>(
                  "needs 3 MiB of memory, and three quarters of what there is are 3; "
                  "ask for less with --bytes"));
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
    if (row.name != "framelane, one core") continue;
    ++ours;
    EXPECT_EQ(row.checked, Checked::kRight);
    EXPECT_EQ(row.median_of("off"), 0);
  }
  EXPECT_EQ(ours, 10);
  EXPECT_EQ(copies, 10);
  EXPECT_EQ(result.rows[0].name, kCopyingAlone);
  const Row* swscale = result.measured("swscale", {{"formats", "bgra to yuv420p"}});
  ASSERT_NE(swscale, nullptr);
  EXPECT_GT(*swscale->median_of("off"), 0);
  EXPECT_LT(*swscale->median_of("off"), 100);
  EXPECT_EQ(result.measured("libyuv", {{"formats", "bgra to nv12"}}) != nullptr, has_libyuv());
  EXPECT_EQ(result.measured("libyuv", {{"formats", "yuv420p to yuv420p, bt601 to bt709"}}),
            nullptr);
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

TEST(PeerFramesTest, AFrameThatWasNotConvertedFails) {
  PeerFrames frames(conversion(PixelFormat::kBgra, PixelFormat::kNv12, {"", 16, 8}));
  Result result;
  take_turns(cpu_session(),
             {frames.contender(
                 "ours", "", [](const ConstImageView&, const ImageView&) {}, true)},
             result);
  EXPECT_THAT(result.problems, ElementsAre(HasSubstr("plane 0, row 0, byte 0 is 0 instead of ")));
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
