#include "pipeline/stage/cpu_stage.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "kernels/converter.hpp"
#include "kernels/reference.hpp"
#include "tests/pipeline/frames/random_bytes.hpp"

namespace framelane {
namespace {

using namespace std::chrono_literals;

constexpr int kWidth = 130;
constexpr int kHeight = 67;

Conversion bgra_to(PixelFormat target) {
  Conversion conversion;
  conversion.width = kWidth;
  conversion.height = kHeight;
  conversion.source = PixelFormat::kBgra;
  conversion.source_color = {.matrix = Matrix::kRgb, .range = Range::kFull};
  conversion.target = target;
  conversion.target_color = {};
  return conversion;
}

PooledImage random_image(FramePool& pool, PixelFormat format, unsigned seed) {
  PooledImage image = allocate_image(pool, format, kWidth, kHeight);
  const std::size_t bytes = plane_row_bytes(format, 0, kWidth);
  for (int y = 0; y < kHeight; ++y) {
    testing::fill_random({image.image.row(0, y), bytes},
                         (std::uint64_t{seed} << 32) + static_cast<unsigned>(y));
  }
  return image;
}

void expect_reference(const Conversion& conversion, const ConstImageView& source,
                      const ImageView& target) {
  FramePool pool;
  const PooledImage expected = allocate_image(pool, conversion.target, kWidth, kHeight);
  convert_reference(conversion, source, expected.image);
  for (int plane = 0; plane < info(conversion.target).plane_count; ++plane) {
    const std::size_t bytes = plane_row_bytes(conversion.target, plane, kWidth);
    for (int y = 0; y < plane_rows(conversion.target, plane, kHeight); ++y) {
      ASSERT_EQ(std::memcmp(target.row(plane, y), expected.image.row(plane, y), bytes), 0)
          << "plane " << plane << " row " << y;
    }
  }
}

class CpuStageTest : public ::testing::Test {
 protected:
  void fill(FrameJob& job, const PlanRef& plan, std::uint64_t sequence,
            const std::vector<Conversion>& conversions) {
    const PooledImage source =
        random_image(pool_, PixelFormat::kBgra, static_cast<unsigned>(sequence));
    job.sequence = sequence;
    job.plan = plan;
    job.input.image = as_const(source.image);
    job.input.buffer = source.buffer;
    job.outputs.resize(conversions.size());
    for (std::size_t i = 0; i < conversions.size(); ++i) {
      job.outputs[i].target = allocate_image(pool_, conversions[i].target, kWidth, kHeight);
    }
  }

  static void expect_reference(const FrameJob& job, std::size_t output,
                               const Conversion& conversion) {
    framelane::expect_reference(conversion, job.input.image, job.outputs[output].target.image);
  }

  FramePool pool_;
  FeedStats stats_{"feed", {{"a"}, {"b"}}, {}, 3};
  std::shared_ptr<Device> device_ = std::make_shared<CpuDevice>(2);
  std::unique_ptr<Stage> stage_ = device_->make_stage(stats_, {});
};

TEST_F(CpuStageTest, OneInputGivesEveryEncodeTheReferencesBytes) {
  const std::vector conversions{bgra_to(PixelFormat::kNv12), bgra_to(PixelFormat::kI444)};
  const PlanRef plan = stage_->prepare(conversions);
  FrameJob job;
  fill(job, plan, 0, conversions);
  stage_->submit(job);
  ASSERT_EQ(stage_->wait(job, {}, Deadline::max()), Stage::Wait::kReady);
  expect_reference(job, 0, conversions[0]);
  expect_reference(job, 1, conversions[1]);
}

TEST_F(CpuStageTest, ManyJobsOverAllLanesAreAllConverted) {
  const std::vector conversions{bgra_to(PixelFormat::kI420)};
  const PlanRef plan = stage_->prepare(conversions);
  std::deque<FrameJob> jobs(24);
  for (std::uint64_t i = 0; i < jobs.size(); ++i) fill(jobs[i], plan, i, conversions);
  for (FrameJob& job : jobs) stage_->submit(job);
  for (FrameJob& job : jobs) {
    ASSERT_EQ(stage_->wait(job, {}, Deadline::max()), Stage::Wait::kReady);
    expect_reference(job, 0, conversions[0]);
  }
  for (const auto& lane : stats_.lanes()) EXPECT_GT(lane->busy.any().total().count(), 0);
  EXPECT_GT(device_->busy()[Engine::kKernel].total().count(), 0);
  EXPECT_EQ(device_->busy()[Engine::kH2d].total().count(), 0);
  EXPECT_EQ((*stats_.ring_jobs())[index_of(RingState::kConverting)], 0u);
  EXPECT_EQ((*stats_.ring_jobs())[index_of(RingState::kReady)], jobs.size());
}

TEST_F(CpuStageTest, AnalysedJobsHaveTheLumaOfTheirFirstTarget) {
  for (const PixelFormat target : {PixelFormat::kNv12, PixelFormat::kI444, PixelFormat::kGray8}) {
    const std::vector conversions{bgra_to(target), bgra_to(PixelFormat::kI420)};
    const PlanRef plan = stage_->prepare(conversions, FrameMemory::kHost, true);
    std::deque<FrameJob> jobs(8);
    for (std::uint64_t i = 0; i < jobs.size(); ++i) {
      fill(jobs[i], plan, i, conversions);
      jobs[i].luma.counts.fill(7);  // as if left by the last job in the same place
      stage_->submit(jobs[i]);
    }
    for (FrameJob& job : jobs) {
      ASSERT_EQ(stage_->wait(job, {}, Deadline::max()), Stage::Wait::kReady);
      expect_reference(job, 0, conversions[0]);
      LumaHistogram luma;
      count_luma(as_const(job.outputs[0].target.image), 0, kHeight, luma);
      EXPECT_EQ(job.luma, luma);
    }
  }
}

// The frame has several bands of rows, and the last band is shorter.
TEST_F(CpuStageTest, TheBandsOfALargeFrameAddUp) {
  Conversion conversion = bgra_to(PixelFormat::kNv12);
  conversion.width = 1030;
  conversion.height = 331;
  const PooledImage source = allocate_image(pool_, PixelFormat::kBgra, 1030, 331);
  for (int y = 0; y < 331; ++y) {
    testing::fill_random({source.image.row(0, y), std::size_t{4} * 1030},
                         static_cast<std::uint64_t>(y));
  }
  FrameJob job;
  job.plan = stage_->prepare({&conversion, 1}, FrameMemory::kHost, true);
  job.input.image = as_const(source.image);
  job.input.buffer = source.buffer;
  job.outputs.resize(1);
  job.outputs[0].target = allocate_image(pool_, conversion.target, 1030, 331);
  stage_->submit(job);
  ASSERT_EQ(stage_->wait(job, {}, Deadline::max()), Stage::Wait::kReady);
  const PooledImage expected = allocate_image(pool_, conversion.target, 1030, 331);
  convert_reference(conversion, job.input.image, expected.image);
  for (int y = 0; y < 331; ++y) {
    const ImageView& got = job.outputs[0].target.image;
    ASSERT_EQ(std::memcmp(got.row(0, y), expected.image.row(0, y), 1030), 0) << y;
    ASSERT_EQ(std::memcmp(got.row(1, y / 2), expected.image.row(1, y / 2), 1030), 0) << y;
  }
  LumaHistogram luma;
  count_luma(as_const(expected.image), 0, 331, luma);
  EXPECT_EQ(job.luma, luma);
}

PooledImage random_picture(FramePool& pool, const Conversion& conversion, std::uint64_t seed) {
  PooledImage picture =
      allocate_image(pool, conversion.source, conversion.width, conversion.height);
  for (int plane = 0; plane < info(conversion.source).plane_count; ++plane) {
    for (int y = 0; y < plane_rows(conversion.source, plane, conversion.height); ++y) {
      testing::fill_random({picture.image.row(plane, y),
                            plane_row_bytes(conversion.source, plane, conversion.width)},
                           (seed << 32) + static_cast<unsigned>(y * 4 + plane));
    }
  }
  return picture;
}

Conversion nv12_to(PixelFormat target, int width, int height) {
  Conversion conversion{width, height, PixelFormat::kNv12, {}, target, {}};
  conversion.source_color.range = Range::kFull;
  return conversion;
}

std::vector<Conversion> scaled_in_many_ways(const Conversion& conversion) {
  std::vector<Conversion> all;
  const auto add = [&](const Rect& crop, const PictureSize& size, ScaleFilter filter,
                       const Orientation& orientation = {}) {
    all.push_back(conversion);
    // With bars above and below.
    all.back().scaling = Scaling{crop, size, {0, 6, size.width, size.height - 12}, filter};
    all.back().scaling->orientation = orientation;
  };
  const Rect whole{0, 0, conversion.width, conversion.height};
  const Rect part{6, 20, conversion.width - 10, conversion.height - 61};
  for (const ScaleFilter filter : {ScaleFilter::kBicubic, ScaleFilter::kSpline36,
                                   ScaleFilter::kBilinear, ScaleFilter::kArea}) {
    for (const PictureSize size : {PictureSize{40, 150}, {40, 330}, {30, 700}, {20, 40}}) {
      add(whole, size, filter);
      add(part, size, filter);
    }
    add(part, {40, 150}, filter, {.upside_down = true});
    add(part, {40, 150}, filter, {.transposed = true, .mirrored = true});
  }
  return all;
}

/// Expects that each target is that of the masked picture, and returns how many copies were made.
std::uint64_t expect_masked(const std::vector<Conversion>& conversions, const MaskShape& shape) {
  FeedStats stats("feed", {{"a"}}, {}, 1);
  const auto device = std::make_shared<CpuDevice>(1);
  const std::unique_ptr<Stage> stage = device->make_stage(stats, {});
  const Conversion& any = conversions.front();
  const auto mask = std::make_shared<const PictureMask>(
      std::span(&shape, 1), any.source, PictureSize{any.width, any.height}, any.source_color);
  FramePool pool;
  // The second picture finds the first one's copy in the memory for copies.
  for (const std::uint64_t sequence : {0, 1}) {
    const PooledImage picture = random_picture(pool, any, sequence + 1);
    FrameJob job;
    job.sequence = sequence;
    job.masks = true;
    job.plan = stage->prepare(conversions, FrameMemory::kHost, false, {}, mask);
    job.input.image = as_const(picture.image);
    job.input.buffer = picture.buffer;
    job.outputs.resize(conversions.size());
    for (std::size_t i = 0; i < conversions.size(); ++i) {
      const auto [width, height] = conversions[i].target_size();
      job.outputs[i].target = allocate_image(pool, conversions[i].target, width, height);
    }
    stage->submit(job);
    EXPECT_EQ(stage->wait(job, {}, std::chrono::steady_clock::now() + 60s), Stage::Wait::kReady);
    mask->apply(picture.image);
    for (std::size_t i = 0; i < conversions.size(); ++i) {
      const ImageView& got = job.outputs[i].target.image;
      const PooledImage expected = allocate_image(pool, got.format, got.width, got.height);
      Converter::make(conversions[i])->run(as_const(picture.image), expected.image, 0, got.height);
      for (int plane = 0; plane < info(got.format).plane_count; ++plane) {
        const std::size_t bytes = plane_row_bytes(got.format, plane, got.width);
        for (int y = 0; y < plane_rows(got.format, plane, got.height); ++y) {
          EXPECT_EQ(std::memcmp(got.row(plane, y), expected.image.row(plane, y), bytes), 0)
              << "conversion " << i << ", plane " << plane << " row " << y;
        }
      }
      if (::testing::Test::HasFailure()) break;
    }
  }
  return stats.host_copies[index_of(HostCopy::kMask)];
}

MaskShape strip(double top, double bottom, MaskShape::Style style) {
  return {.polygon = {{0.1, top}, {0.8, top}, {0.8, bottom}, {0.1, bottom}}, .style = style};
}

TEST(CpuStageMaskTest, WhatIsMadeOfAFrameIsMadeOfTheMaskedOne) {
  std::vector<Conversion> bgra{bgra_to(PixelFormat::kNv12)};
  bgra.front().width = 50;
  bgra.front().height = 403;
  const std::vector<Conversion> nv12{nv12_to(PixelFormat::kI420, 50, 403)};
  for (std::vector<Conversion> conversions : {bgra, nv12}) {
    const std::vector<Conversion> scaled = scaled_in_many_ways(conversions.front());
    conversions.insert(conversions.end(), scaled.begin(), scaled.end());
    for (const auto style : {MaskShape::Style::kFill, MaskShape::Style::kPixelate}) {
      for (const auto& [top, bottom] :
           {std::pair{0.4, 0.45}, {0.0, 0.02}, {0.97, 1.0}, {0.2, 0.7}, {0.0, 1.0}}) {
        EXPECT_EQ(expect_masked(conversions, strip(top, bottom, style)), 2U);
        if (HasFailure()) return;
      }
    }
  }
}

TEST(CpuStageMaskTest, APartWithoutTheMaskNeedsNoCopy) {
  Conversion conversion = nv12_to(PixelFormat::kI420, 60, 400);
  conversion.scaling = Scaling{{0, 200, 60, 200}, {40, 100}, {0, 0, 40, 100}};
  EXPECT_EQ(expect_masked({conversion}, strip(0, 0.4, MaskShape::Style::kFill)), 0U);
}

TEST_F(CpuStageTest, WaitForAJobThatIsNotSubmittedEndsAtTheDeadline) {
  FrameJob job;
  EXPECT_EQ(stage_->wait(job, {}, std::chrono::steady_clock::now() + 1ms), Stage::Wait::kLate);
}

TEST_F(CpuStageTest, StopEndsAWait) {
  FrameJob job;
  std::stop_source stop;
  std::jthread stopper([&stop] { stop.request_stop(); });
  EXPECT_EQ(stage_->wait(job, stop.get_token(), Deadline::max()), Stage::Wait::kStopped);
}

TEST_F(CpuStageTest, DestructionWaitsForAcceptedJobs) {
  const std::vector conversions{bgra_to(PixelFormat::kI420)};
  const PlanRef plan = stage_->prepare(conversions);
  std::deque<FrameJob> jobs(8);
  for (std::uint64_t i = 0; i < jobs.size(); ++i) fill(jobs[i], plan, i, conversions);
  for (FrameJob& job : jobs) stage_->submit(job);
  stage_.reset();
  for (const FrameJob& job : jobs) EXPECT_TRUE(job.converted);
}

TEST_F(CpuStageTest, FeedsShareOneDevice) {
  FeedStats other_stats("other", {{"a"}}, {}, 2);
  const std::unique_ptr<Stage> other = device_->make_stage(other_stats, {});
  const std::vector conversions{bgra_to(PixelFormat::kNv12)};
  std::deque<FrameJob> jobs(16);
  const std::array stages{stage_.get(), other.get()};
  const std::array plans{stage_->prepare(conversions), other->prepare(conversions)};
  for (std::uint64_t i = 0; i < jobs.size(); ++i) {
    fill(jobs[i], plans[i % 2], i / 2, conversions);
    stages[i % 2]->submit(jobs[i]);
  }
  for (std::uint64_t i = 0; i < jobs.size(); ++i) {
    ASSERT_EQ(stages[i % 2]->wait(jobs[i], {}, Deadline::max()), Stage::Wait::kReady);
    expect_reference(jobs[i], 0, conversions[0]);
  }
}

// This is here and not among the tests of kernels/, because those are not built with
// ThreadSanitizer.
TEST(ConverterThreadsTest, OneConverterServesSeveralThreadsAtOnce) {
  constexpr int kThreads = 4;
  constexpr int kRows = 16;
  static_assert(kThreads * kRows <= kHeight);
  FramePool pool;
  for (const PixelFormat format : {PixelFormat::kBgra, PixelFormat::kBgr24}) {
    Conversion conversion = bgra_to(PixelFormat::kNv12);
    conversion.source = format;
    const PooledImage source = random_image(pool, format, 4);
    const PooledImage target = allocate_image(pool, conversion.target, kWidth, kHeight);
    const auto converter = Converter::make(conversion);
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < kThreads; ++i) {
        const int end = i + 1 == kThreads ? kHeight : (i + 1) * kRows;
        threads.emplace_back(
            [&, i, end] { converter->run(as_const(source.image), target.image, i * kRows, end); });
      }
    }
    SCOPED_TRACE(converter->name());
    expect_reference(conversion, as_const(source.image), target.image);
  }
}

}  // namespace
}  // namespace framelane
