// Longer than 400 lines: all that a GPU must do, on the stand-in runtime and on a real one, with
// one fixture.
#include "pipeline/stage/cuda/cuda_stage.hpp"

#include <cstring>
#include <thread>

#include "tests/pipeline/stage/cuda/stage_fixture.hpp"

namespace framelane::testing {
namespace {

class CudaStageTest : public CudaStageFixture<CudaTest> {
 protected:
  /// Runs one job after the other, so that no upload is behind another and each is sliced.
  void run_alone(Jobs& jobs) {
    jobs.use(stage_->prepare(jobs.conversions(), jobs.memory(), jobs.analysed()));
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      ASSERT_TRUE(
          comes_true([&] { return device_->context()->enter_copy_gate().uploads().is_idle(); }));
      stage_->submit(jobs[i]);
      ASSERT_EQ(stage_->wait(jobs[i], {}, soon()), Stage::Wait::kReady);
      jobs.expect_exact(i);
    }
  }
};

TEST_F(CudaStageTest, OneUploadGivesEveryEncodeTheReferencesBytes) {
  Jobs jobs(bgra_to_two(), 1);
  run(jobs);
  EXPECT_EQ(converting(), 0u);
  EXPECT_EQ(ready(), 1u);
  EXPECT_FALSE(device_->lost());
}

TEST_F(CudaStageTest, EveryPairOfFormatsIsTheReferences) {
  for (int source = 0; source < kPixelFormatCount; ++source) {
    for (int target = 0; target < kPixelFormatCount; ++target) {
      const Conversion conversion =
          conversion_of(static_cast<PixelFormat>(source), static_cast<PixelFormat>(target), 51, 37);
      if (why_unsupported(conversion) || is_identity(conversion)) continue;
      Jobs jobs({conversion}, 1);
      run(jobs);
    }
  }
  EXPECT_FALSE(device_->lost());
}

TEST_F(CudaStageTest, AnEncodeThatBypassesCostsNothing) {
  Conversion bypass = conversion_of(PixelFormat::kI420, PixelFormat::kI420);
  bypass.source_color = bypass.target_color;
  Jobs jobs({bypass, conversion_of(PixelFormat::kI420, PixelFormat::kNv12)}, 3);
  run(jobs);
  EXPECT_EQ(device_->memory_bytes(), plan_bytes(jobs.conversions(), FrameMemory::kHost, 2));
}

/// Every kind of target: converted, copied, scaled.
std::vector<Conversion> drawn_on_all() {
  Conversion copied = conversion_of(PixelFormat::kI420, PixelFormat::kI420);
  copied.source_color = copied.target_color;
  Conversion converted = conversion_of(PixelFormat::kI420, PixelFormat::kNv12);
  converted.source_color = copied.source_color;
  Conversion scaled = converted;
  scaled.scaling = Scaling{{0, 0, kPictureWidth, kPictureHeight}, {60, 40}, {0, 0, 60, 40}};
  std::vector<Conversion> all{copied, converted, scaled};
  for (Conversion& conversion : all) conversion.overlaid = true;
  return all;
}

TEST_F(CudaStageTest, OverlaysAreDrawnOnEveryKindOfTargetAndNotOnTheSource) {
  for (const std::optional<int> slices : {std::optional<int>(), std::optional(4)}) {
    make_stage(slices);
    Jobs jobs(drawn_on_all(), 13);
    jobs.analyse();
    run(jobs);
  }
  EXPECT_FALSE(device_->lost());
}

TEST_F(CudaStageTest, AnOverlayIsCopiedUpOnceForAllLanes) {
  if (!stand_in::present()) GTEST_SKIP() << "counts the stand-in's calls";
  Conversion conversion = conversion_of(PixelFormat::kBgra, PixelFormat::kNv12);
  conversion.overlaid = true;
  Jobs jobs({conversion}, 9);
  jobs.use(stage_->prepare(jobs.conversions(), jobs.memory()));
  for (const std::size_t left_out : {1U, 4U}) {  // the encode does not take these frames
    jobs[left_out].outputs[0].target = {};
    jobs[left_out].outputs[0].overlays.reset();
  }
  const int before = copies();
  submit(jobs);
  wait(jobs);
  // Nine uploads, seven downloads (the planes of NV12 are one block), one overlay that stays, and
  // one that changes every three frames.
  EXPECT_EQ(copies() - before, 9 + 7 + 1 + 3);
}

TEST_F(CudaStageTest, DecodedFramesAreDrawnOnWithoutTouchingTheDecodersSurfaces) {
  Conversion same = conversion_of(PixelFormat::kNv12, PixelFormat::kNv12);
  same.target_color = same.source_color;
  Conversion drawn = same;
  drawn.overlaid = true;
  Jobs jobs({drawn, same}, 7);
  jobs.analyse();
  jobs.put_on(device_->context());
  run(jobs);
  EXPECT_FALSE(device_->lost());
}

TEST_F(CudaStageTest, APlanWithNothingToConvertTakesNoMemory) {
  Conversion bypass = conversion_of(PixelFormat::kI420, PixelFormat::kI420);
  bypass.source_color = bypass.target_color;
  const PlanRef plan = stage_->prepare(std::vector{bypass, bypass});
  EXPECT_EQ(device_->memory_bytes(), 0u);
}

/// What can become of a decoder's frames: only a download, or another layout, range or matrix, or
/// luma alone.
std::vector<Conversion> from_nv12(int width = 130, int height = 67) {
  Conversion same = conversion_of(PixelFormat::kNv12, PixelFormat::kNv12, width, height);
  same.target_color = same.source_color;
  Conversion matrix = conversion_of(PixelFormat::kNv12, PixelFormat::kI420, width, height);
  matrix.target_color.matrix = Matrix::kBt2020;
  Conversion layout = same;
  layout.target = PixelFormat::kI420;
  return {same, conversion_of(PixelFormat::kNv12, PixelFormat::kNv12, width, height), matrix,
          layout, conversion_of(PixelFormat::kNv12, PixelFormat::kGray8, width, height)};
}

TEST_F(CudaStageTest, FramesOnTheGpuAreConvertedWhereTheyAre) {
  for (const std::optional<int> slices : {std::optional<int>(), std::optional(4)}) {
    make_stage(slices);
    ASSERT_TRUE(stage_->takes_device_frames());
    Jobs jobs(from_nv12(), 9);
    jobs.put_on(device_->context());
    run(jobs);
    EXPECT_EQ(device_->memory_bytes(), plan_bytes(jobs.conversions(), FrameMemory::kDevice, 2));
  }
  EXPECT_EQ(stats_.steps[index_of(StageStep::kH2d)].snapshot().count, 0u);
  EXPECT_EQ(stats_.steps[index_of(StageStep::kKernel)].snapshot().count, 18u);
  EXPECT_EQ(stats_.steps[index_of(StageStep::kD2h)].snapshot().count, 18u);
  EXPECT_EQ(device_->busy()[Engine::kH2d].total().count(), 0);
  EXPECT_GT(device_->busy()[Engine::kD2h].total().count(), 0);
  EXPECT_EQ(converting(), 0u);
  EXPECT_EQ(ready(), 18u);
  EXPECT_FALSE(device_->lost());
}

TEST_F(CudaStageTest, FramesOnTheGpuOfAnySizeAreConverted) {
  for (const auto& [width, height] : {std::pair{1, 1}, std::pair{51, 37}, std::pair{64, 2}}) {
    Jobs jobs(from_nv12(width, height), 3);
    jobs.put_on(device_->context());
    run(jobs);
  }
}

TEST_F(CudaStageTest, AFrameOnTheGpuThatNothingChangesIsCopiedBackWithoutMemoryOfOurs) {
  Jobs jobs({from_nv12().front()}, 5);
  jobs.put_on(device_->context());
  run(jobs);
  EXPECT_EQ(device_->memory_bytes(), 0u);
}

Conversion scaled(Conversion conversion, int width, int height) {
  conversion.scaling = Scaling{.crop = {4, 2, conversion.width - 4, conversion.height - 2},
                               .target = {width, height},
                               .place = {2, 0, width - 2, height}};
  return conversion;
}

TEST_F(CudaStageTest, WhatIsMadeOfAFrameIsMadeOfTheMaskedOne) {
  for (const bool on_gpu : {false, true}) {
    // The shapes cross slices; the second mask replaces the first.
    for (const double right : {0.9, 0.5}) {
      make_stage(4);
      std::vector<Conversion> conversions = from_nv12();
      if (!on_gpu) conversions.erase(conversions.begin());  // it would be passed on
      conversions.push_back(scaled(from_nv12().front(), 64, 40));
      Jobs jobs(conversions, 5);
      if (on_gpu) jobs.put_on(device_->context());
      jobs.mask(mask_of(conversions.front(), right));
      jobs.analyse();
      run(jobs);
    }
  }
  EXPECT_EQ(stats_.host_copies[index_of(HostCopy::kMask)], 0u);
  EXPECT_EQ(stats_.status().device, "cuda:0");
}

/// Draws three overlays on each target, none over another.
void draw_apart(Jobs& jobs) {
  std::vector<std::shared_ptr<const Overlays>> by_target;
  for (const Conversion& conversion : jobs.conversions()) {
    const RgbaPicture gray{10, 6, std::vector<std::uint8_t>(std::size_t{4} * 10 * 6, 99)};
    Overlays overlays;
    for (const int x : {0, 10, 20}) {
      overlays.push_back(std::make_shared<const Overlay>(
          gray, x, 2, conversion.target_size(), conversion.target, conversion.target_color));
    }
    by_target.push_back(std::make_shared<const Overlays>(std::move(overlays)));
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    for (std::size_t t = 0; t < by_target.size(); ++t) jobs[i].outputs[t].overlays = by_target[t];
  }
}

TEST_F(CudaStageTest, TheMaskAndAllOverlaysOfAFrameAreALaunchEach) {
  if (!stand_in::present()) GTEST_SKIP() << "counts the stand-in's calls";
  constexpr int kFrames = 6;
  std::vector<Conversion> conversions;
  for (const auto& [width, height] : {std::pair{64, 40}, {48, 30}, {32, 20}}) {
    conversions.push_back(
        scaled(conversion_of(PixelFormat::kBgra, PixelFormat::kNv12), width, height));
    conversions.back().overlaid = true;
  }
  const std::vector<MaskShape> shapes{
      {.polygon = {{0, 0}, {0.4, 0}, {0.4, 0.4}}, .style = MaskShape::Style::kPixelate},
      {.polygon = {{0.6, 0}, {0.9, 0}, {0.9, 1}}}};
  const auto mask = std::make_shared<const PictureMask>(shapes, PixelFormat::kBgra,
                                                        PictureSize{kPictureWidth, kPictureHeight},
                                                        conversions.front().source_color);
  std::array<int, 2> launches{};
  std::array<int, 2> waits{};
  for (const bool drawn : {false, true}) {
    Jobs jobs(conversions, kFrames);
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      for (JobOutput& output : jobs[i].outputs) output.overlays.reset();
    }
    if (drawn) {
      jobs.mask(mask);
      draw_apart(jobs);
    }
    const int launches_before = stand_in::calls("cudaLaunchKernel");
    const int waits_before = stand_in::calls("cudaStreamWaitEvent");
    run(jobs);
    launches[drawn] = stand_in::calls("cudaLaunchKernel") - launches_before;
    waits[drawn] = stand_in::calls("cudaStreamWaitEvent") - waits_before;
  }
  EXPECT_EQ(launches[true] - launches[false], 2 * kFrames);
  // For the copies of the overlays, before the first frame.
  EXPECT_EQ(waits[true] - waits[false], 9);
}

TEST_F(CudaStageTest, AnEncodeThatIsDownGetsNothing) {
  Jobs jobs(from_nv12(), 3);
  jobs.put_on(device_->context());
  for (std::size_t i = 0; i < jobs.size(); ++i) jobs[i].outputs[0].target = {};
  run(jobs);
  EXPECT_FALSE(device_->lost());
}

TEST_F(CudaStageTest, FramesMayMoveToTheGpuAndBack) {
  Jobs uploaded(from_nv12(), 4);
  Jobs decoded(from_nv12(), 4);
  Jobs again(from_nv12(), 4);
  decoded.put_on(device_->context());
  for (Jobs* jobs : {&uploaded, &decoded, &again}) {
    jobs->use(stage_->prepare(jobs->conversions(), jobs->memory()));
    submit(*jobs);
  }
  for (Jobs* jobs : {&uploaded, &decoded, &again}) wait(*jobs);
  EXPECT_EQ(stats_.steps[index_of(StageStep::kH2d)].snapshot().count, 8u);
}

TEST_F(CudaStageTest, ManyJobsOverAllLanesAreAllConverted) {
  Jobs jobs(bgra_to_two(), 24);
  run(jobs);
  EXPECT_EQ(ready(), jobs.size());
  EXPECT_EQ(stats_.steps[index_of(StageStep::kH2d)].snapshot().count, jobs.size());
  EXPECT_EQ(stats_.steps[index_of(StageStep::kKernel)].snapshot().count, jobs.size());
  EXPECT_EQ(stats_.steps[index_of(StageStep::kD2h)].snapshot().count, jobs.size());
  EXPECT_EQ(stats_.status().device, "cuda:0");
}

TEST_F(CudaStageTest, PicturesStoredBottomUpAreConverted) {
  Jobs jobs({conversion_of(PixelFormat::kBgra, PixelFormat::kNv12)}, 3);
  jobs.turn_over(1);
  run(jobs);
  Jobs yuv({conversion_of(PixelFormat::kI420, PixelFormat::kNv12)}, 2);
  yuv.turn_over(0);
  run(yuv);
}

TEST_F(CudaStageTest, PlanesOfAnyPitchAreConverted) {
  Jobs jobs({conversion_of(PixelFormat::kI420, PixelFormat::kNv12)}, 2);
  // Rows in the buffer of a wider picture.
  FramePool pool;
  const PooledImage wide = allocate_image(pool, PixelFormat::kI420, 400, 67);
  std::memset(wide.buffer.get()->data, 77, wide.buffer.get()->size);
  jobs[0].input.image = as_const(wide.image);
  jobs[0].input.image.width = 130;
  jobs[0].input.buffer = wide.buffer;
  run(jobs);
}

TEST_F(CudaStageTest, SlicesGiveTheSameBytes) {
  for (const int slices : {1, 2, 3, 16}) {
    make_stage(slices);
    for (const auto& [source, target] : {std::pair{PixelFormat::kBgra, PixelFormat::kNv12},
                                         std::pair{PixelFormat::kI420, PixelFormat::kI420},
                                         std::pair{PixelFormat::kI422, PixelFormat::kNv12},
                                         std::pair{PixelFormat::kRgb24, PixelFormat::kI444}}) {
      Conversion conversion = conversion_of(source, target, 90, 131);
      // A change of matrix reads the most rows ahead: chroma is interpolated and filtered again.
      if (!info(source).rgb) conversion.source_color.matrix = Matrix::kBt601;
      Jobs jobs({conversion, conversion_of(source, PixelFormat::kGray8, 90, 131)}, 2);
      run_alone(jobs);
      Jobs crowd(jobs.conversions(), 4);
      run(crowd);
    }
  }
  EXPECT_FALSE(device_->lost());
}

/// Beside one that is not: what is scaled waits for the whole frame.
TEST_F(CudaStageTest, PicturesOfAnotherSizeAreConvertedFromHostsAndFromTheGpu) {
  for (const int slices : {1, 4}) {
    make_stage(slices);
    const Conversion smaller =
        scaled(conversion_of(PixelFormat::kBgra, PixelFormat::kNv12), 54, 31);
    const Conversion larger =
        scaled(conversion_of(PixelFormat::kBgra, PixelFormat::kI444), 201, 80);
    Jobs jobs({smaller, bgra_to_two().front(), larger}, 5);
    jobs.analyse();
    run(jobs);
    Jobs alone(jobs.conversions(), 2);
    alone.analyse();
    run_alone(alone);
  }
  Jobs decoded({scaled(from_nv12().front(), 64, 40), from_nv12().front()}, 5);
  decoded.put_on(device_->context());
  run(decoded);
  EXPECT_FALSE(device_->lost());
  EXPECT_EQ(ready(), 2 * (5u + 2u) + 5u);
}

TEST_F(CudaStageTest, AnalysedJobsHaveTheLumaOfTheirFirstTarget) {
  for (const int slices : {1, 4}) {
    make_stage(slices);
    for (const auto& [source, target] : {std::pair{PixelFormat::kBgra, PixelFormat::kNv12},
                                         std::pair{PixelFormat::kRgb24, PixelFormat::kI444},
                                         std::pair{PixelFormat::kI420, PixelFormat::kNv12},
                                         std::pair{PixelFormat::kYuyv, PixelFormat::kI420}}) {
      // So many that every place of every lane is used several times.
      Jobs jobs({conversion_of(source, target, 90, 131),
                 conversion_of(source, PixelFormat::kGray8, 90, 131)},
                13);
      jobs.analyse();
      run(jobs);
      Jobs alone(jobs.conversions(), 3);
      alone.analyse();
      run_alone(alone);
    }
  }
  EXPECT_FALSE(device_->lost());
  EXPECT_EQ(stats_.status().device, "cuda:0");
}

TEST_F(CudaStageTest, AnalysedFramesOnTheGpuHaveTheLumaOfTheirFirstTarget) {
  for (const Conversion& first : from_nv12()) {
    Jobs jobs({first, from_nv12()[2]}, 9);
    jobs.put_on(device_->context());
    jobs.analyse();
    run(jobs);
  }
  Jobs identity({from_nv12().front()}, 2);
  identity.put_on(device_->context());
  identity.analyse();
  run(identity);
  EXPECT_EQ(device_->memory_bytes(), 2 * kJobsInLane * sizeof(LumaHistogram));
  EXPECT_EQ(stats_.status().device, "cuda:0");
}

// The encode counts a frame that bypasses the stage. That there are other conversions changes
// nothing.
TEST_F(CudaStageTest, ABypassIsNotAnalysedHere) {
  Conversion bypass = conversion_of(PixelFormat::kI420, PixelFormat::kI420);
  bypass.source_color = bypass.target_color;
  Conversion other = conversion_of(PixelFormat::kI420, PixelFormat::kNv12);
  other.source_color = bypass.source_color;
  Jobs jobs({bypass, other}, 3);
  jobs.use(stage_->prepare(jobs.conversions(), jobs.memory(), true));
  EXPECT_EQ(device_->memory_bytes(), plan_bytes(jobs.conversions(), FrameMemory::kHost, 2));
  submit(jobs);
  wait(jobs);
  EXPECT_EQ(jobs[0].luma, LumaHistogram());
}

TEST_F(CudaStageTest, TopLeftSitingLooksUpAndAheadAcrossSlices) {
  make_stage(8);
  Conversion conversion = conversion_of(PixelFormat::kI420, PixelFormat::kNv12, 90, 131);
  conversion.source_color.matrix = Matrix::kBt601;
  conversion.source_color.siting = conversion.target_color.siting = Siting::kTopLeft;
  Jobs jobs({conversion}, 3);
  run_alone(jobs);
}

TEST_F(CudaStageTest, FeedsShareOneDevice) {
  FeedStats other_stats("yard", {{"a"}}, {}, 2);
  const std::unique_ptr<Stage> other = device_->make_stage(other_stats, {});
  Jobs jobs(bgra_to_two(), 16);
  Jobs other_jobs({conversion_of(PixelFormat::kI420, PixelFormat::kNv12)}, 16);
  jobs.use(stage_->prepare(jobs.conversions()));
  other_jobs.use(other->prepare(other_jobs.conversions()));
  std::thread other_feed([&] {
    for (std::size_t i = 0; i < other_jobs.size(); ++i) other->submit(other_jobs[i]);
  });
  submit(jobs);
  wait(jobs);
  other_feed.join();
  for (std::size_t i = 0; i < other_jobs.size(); ++i) {
    ASSERT_EQ(other->wait(other_jobs[i], {}, soon()), Stage::Wait::kReady);
    other_jobs.expect_exact(i);
  }
  // The device's time is the sum of all lanes' times: there is one copy at a time in each
  // direction.
  for (const Engine engine : {Engine::kH2d, Engine::kD2h}) {
    std::chrono::nanoseconds lanes{0};
    for (const FeedStats* stats : {&stats_, &other_stats}) {
      for (const auto& lane : stats->lanes()) lanes += lane->busy[engine].total();
    }
    EXPECT_EQ(lanes, device_->busy()[engine].total()) << kEngineNames[index_of(engine)];
    EXPECT_GT(lanes.count(), 0);
  }
  EXPECT_GT(device_->busy()[Engine::kKernel].total().count(), 0);
  EXPECT_GE(device_->busy().overlap_ratio(), 1.0);
}

TEST_F(CudaStageTest, APlanDiesWithItsLastJob) {
  Jobs jobs(bgra_to_two(), 4);
  jobs.use(stage_->prepare(jobs.conversions()));
  const std::size_t bytes = device_->memory_bytes();
  EXPECT_EQ(bytes, plan_bytes(jobs.conversions(), FrameMemory::kHost, 2));
  submit(jobs);
  // The format changes: both plans exist until the jobs of the first are done.
  Jobs next({conversion_of(PixelFormat::kI420, PixelFormat::kNv12)}, 4);
  next.use(stage_->prepare(next.conversions()));
  EXPECT_GT(device_->memory_bytes(), bytes);
  wait(jobs);
  jobs.use(nullptr);
  submit(next);
  wait(next);
  EXPECT_EQ(device_->memory_bytes(), plan_bytes(next.conversions(), FrameMemory::kHost, 2));
}

TEST_F(CudaStageTest, DestructionWaitsForAcceptedJobs) {
  Jobs jobs(bgra_to_two(), 9);
  jobs.use(stage_->prepare(jobs.conversions()));
  submit(jobs);
  stage_.reset();
  for (std::size_t i = 0; i < jobs.size(); ++i) EXPECT_TRUE(jobs[i].converted);
  jobs.expect_all_exact();
}

TEST_F(CudaStageTest, WaitForAJobThatIsNotSubmittedEndsAtTheDeadlineOrAStop) {
  Jobs jobs(bgra_to_two(), 1);
  jobs.use(stage_->prepare(jobs.conversions()));
  EXPECT_EQ(stage_->wait(jobs[0], {}, std::chrono::steady_clock::now() + 1ms), Stage::Wait::kLate);
  std::stop_source stop;
  std::jthread stopper([&stop] { stop.request_stop(); });
  EXPECT_EQ(stage_->wait(jobs[0], stop.get_token(), Deadline::max()), Stage::Wait::kStopped);
  EXPECT_FALSE(device_->lost());
  submit(jobs);
  wait(jobs);
}

TEST(SliceEndsTest, AutoTakesASliceForEvery8MiBAndAtMostEight) {
  EXPECT_EQ(slice_ends(PixelFormat::kBgra, 1920, 1080, {}), std::vector{1080});
  EXPECT_EQ(slice_ends(PixelFormat::kBgra, 3840, 2160, {}).size(), 4u);
  EXPECT_EQ(slice_ends(PixelFormat::kBgra, 7680, 4320, {}).size(), 8u);
}

TEST(SliceEndsTest, EndsAreWholeChromaRowsAndTheHeight) {
  for (const int height : {1, 15, 16, 67, 1081}) {
    for (const int slices : {1, 2, 7, 16}) {
      const std::vector<int> ends = slice_ends(PixelFormat::kI420, 100, height, slices);
      EXPECT_LE(ends.size(), static_cast<std::size_t>(slices));
      EXPECT_EQ(ends.back(), height);
      int begin = 0;
      for (const int end : ends) {
        EXPECT_TRUE(end == height || end % 16 == 0);
        EXPECT_GT(end, begin);
        begin = end;
      }
    }
  }
}

}  // namespace
}  // namespace framelane::testing
