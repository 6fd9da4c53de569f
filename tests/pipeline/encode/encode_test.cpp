// Longer than 400 lines: one class is tested with one fixture and with stages that fail in many
// ways.
#include "pipeline/encode/encode.hpp"

#include <gmock/gmock.h>
#include <spdlog/spdlog.h>

#include <cmath>
#include <condition_variable>
#include <cstring>
#include <future>
#include <mutex>

#include "pipeline/base/failure.hpp"
#include "tests/pipeline/measure/frame_lines.hpp"
#include "tests/pipeline/output/output_fixture.hpp"

namespace framelane {
namespace {

using namespace testing;  // of framelane
using ::testing::HasSubstr;

/// A stage that converts nothing.
class FakeStage : public Stage {
 public:
  PlanRef prepare(std::span<const Conversion>, FrameMemory, bool, std::span<const FrameMemory>,
                  std::shared_ptr<const PictureMask>) override {
    return nullptr;
  }
  void submit(FrameJob&) override {}
};

class ReadyStage : public FakeStage {
  Wait wait(FrameJob&, std::stop_token, Deadline) override { return Wait::kReady; }
};

/// Its first two waits are late, and the conversion ends during the third.
class LateStage : public FakeStage {
  Wait wait(FrameJob&, std::stop_token, Deadline) override {
    return ++waits_ <= 2 ? Wait::kLate : Wait::kReady;
  }
  int waits_ = 0;
};

/// Loses the first two frames with their device.
class LossyStage : public FakeStage {
  Wait wait(FrameJob& job, std::stop_token, Deadline) override {
    return job.sequence < 2 ? Wait::kDeviceLost : Wait::kReady;
  }
};

/// Has no memory to mask frames.
class UnmaskedStage : public FakeStage {
  Wait wait(FrameJob& job, std::stop_token, Deadline) override {
    job.outputs[0].target = {};
    return Wait::kReady;
  }
};

/// Its conversions end only while a wait is under way that cannot be stopped.
class StubbornStage : public FakeStage {
 public:
  std::atomic<int> waiting{0};
  std::atomic<int> waited_for{0};

 private:
  Wait wait(FrameJob&, std::stop_token stop, Deadline) override {
    if (!stop.stop_possible()) {
      ++waited_for;
      return Wait::kReady;
    }
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any never;
    ++waiting;
    never.wait(lock, stop, [] { return false; });
    return Wait::kStopped;
  }
};

/// An encode over a ring that the test fills.
class EncodeTest : public ::testing::Test {
 protected:
  static constexpr int kRing = 64;

  EncodeTest() {
    spdlog::set_level(spdlog::level::off);
    av_log_set_level(AV_LOG_FATAL);
    use("libx264", {{"preset", "ultrafast"}});
  }

  void use(const std::string& codec, AvOptions codec_options = {}) {
    options_.name = "live";
    options_.codecs = {{codec, std::move(codec_options)}};
  }
  std::shared_ptr<EncodePlan> plan(int width = 64) const {
    return make_encode_plan({.options = options_,
                             .source = {.layout = PixelFormat::kI420,
                                        .width = width,
                                        .height = 48,
                                        .color = {.matrix = Matrix::kBt601},
                                        .time_base = {1, 25},
                                        .frame_rate = {25, 1}}});
  }

  /// A frame comes in; `converts`: it is still in the stage.
  void publish(const std::shared_ptr<EncodePlan>& plan, std::int64_t pts, bool converts = false,
               bool analyse = false) {
    const int width = plan->target.width;
    PooledImage image = allocate_image(pool_, PixelFormat::kI420, width, 48);
    std::memset(image.buffer.get()->data, 64, image.buffer.get()->size);
    FrameTicket ticket;
    open_tickets(stats_, stats_->run(), testing::frame_lines(*stats_), std::span(&ticket, 1));
    auto place = ring_.try_acquire();
    ASSERT_TRUE(place);
    FrameJob& job = **place;
    job.input.image = as_const(image.image);
    job.input.buffer = image.buffer;
    job.analyse = analyse;
    job.input.pts = pts;
    job.input.duration = 1;
    job.input.decoded_at = std::chrono::steady_clock::now();
    job.outputs[0].encode_plan = plan;
    job.outputs[0].ticket = std::move(ticket);
    job.outputs[0].converts = converts;
    job.masks = masks_;
    if (converts) job.outputs[0].target = std::move(image);
    ++(*stats_->ring_jobs())[index_of(RingState::kReady)];
    ASSERT_TRUE(place->publish());
  }
  void publish_range(const std::shared_ptr<EncodePlan>& plan, std::int64_t first, int count) {
    for (int i = 0; i < count; ++i) publish(plan, first + i);
  }

  /// Runs the encode on this thread, from start to end.
  void run(Stage& stage) {
    Encode encode(options_, 0, stats_->encode(0), *stats_, line_clock_, fanout_);
    encode.run(ring_, stage, cancel_.get_token(), cancel_reason_);
  }
  void run_to_the_end() {
    ring_.close();
    ReadyStage stage;
    run(stage);
  }
  void cancel(DropReason reason) {
    cancel_reason_ = reason;
    cancel_.request_stop();
    ring_.close();
  }

  EncodeCounts counts() const { return stats_->ledger().encodes[0]; }
  std::uint64_t dropped(DropReason reason) const { return counts().dropped[index_of(reason)]; }
  void expect_every_frame_accounted_for() const {
    const EncodeCounts now = counts();
    std::uint64_t ended = now.out;
    for (const std::uint64_t frames : now.dropped) ended += frames;
    EXPECT_EQ(ended, now.in);
    EXPECT_EQ(now.in_flight, 0);
    EXPECT_EQ((*stats_->ring_jobs())[index_of(RingState::kReady)], 0u);
  }

  EncodeOptions options_;
  FramePool pool_;
  std::shared_ptr<FeedStats> stats_ = std::make_shared<FeedStats>(
      "gate", std::vector<FeedStats::EncodeSpec>{{"live", false}}, std::vector<std::string>{}, 1);
  FrameRing ring_{kRing, 1, *stats_};
  LineClock line_clock_{50ms};
  bool masks_ = false;  // the stage has to mask the frames
  std::vector<Output*> outputs_;
  PacketFanout fanout_{{}};
  std::stop_source cancel_;
  std::atomic<DropReason> cancel_reason_{DropReason::kStop};
};

TEST_F(EncodeTest, EveryFrameComesOutOnce) {
  use("libx264", {{"preset", "medium"}});  // holds more frames than come, and reorders them
  publish_range(plan(), 0, 30);
  run_to_the_end();
  EXPECT_EQ(counts().out, 30u);
  expect_every_frame_accounted_for();
}

TEST_F(EncodeTest, WhatTheEncoderHoldsComesOutWhileTheSourceIsGone) {
  use("libx264", {{"preset", "medium"}});
  const TempFolder folder;
  TestOutput file(output_to(folder / "out.ts"));
  PacketFanout fanout({&file.output.inlet()});
  file.start();
  const auto opened = plan();
  const auto come = [&] { line_clock_.arrived(std::chrono::steady_clock::now(), {}, {}); };
  line_clock_.set_zero(0);
  come();
  publish_range(opened, 0, 10);
  Encode encode(options_, 0, stats_->encode(0), *stats_, line_clock_, fanout);
  std::jthread thread([&] {
    ReadyStage stage;
    encode.run(ring_, stage, cancel_.get_token(), cancel_reason_);
  });
  EXPECT_TRUE(comes_true([&] { return counts().out == 10; }));
  come();
  publish_range(opened, 100, 10);  // it is back, and the encoder opened again
  EXPECT_TRUE(comes_true([&] { return counts().out == 20; }));
  ring_.close();
  thread.join();
  fanout.finish();
  file.join();
  expect_every_frame_accounted_for();
  EXPECT_EQ(decoded_frames(folder / "out.ts"), 20u);
}

// After a gap sound comes before the first picture, from another thread.
TEST_F(EncodeTest, TheGroupOfAnEncoderThatIsClosedDoesNotComeAgain) {
  OutputStats output("out");
  OutputInlet inlet(512, output, false, [](const MediaFormat&) { return true; });
  PacketFanout fanout({&inlet});
  const auto popped = [&] {
    MediaPacket packet;
    int count = 0;
    while (inlet.pop(packet, 0ms, {}) == PacketQueue::Pop::kPacket) ++count;
    return count;
  };
  const auto opened = plan();
  publish_range(opened, 0, 10);
  ring_.close();
  ReadyStage stage;
  Encode encode(options_, 0, stats_->encode(0), *stats_, line_clock_, fanout);
  encode.run(ring_, stage, cancel_.get_token(), cancel_reason_);
  EXPECT_EQ(popped(), 10);
  inlet.request_resume();
  fanout.publish(*make_packet(), StreamKind::kAudio, opened->media, {});
  EXPECT_EQ(popped(), 1);
}

// A real failure: FFmpeg's MPEG-4 encoder refuses frames that are more than a day apart
// (FFmpeg 5.1: more than an hour).
constexpr std::int64_t kTwoDays = 2 * 24 * 3600 * 25;

TEST_F(EncodeTest, BrightnessIsThatOfTheNewestFrameAndOfNoneWhereThatIsNotAnalysed) {
  EXPECT_TRUE(std::isnan(stats_->luma_mean));
  publish(plan(), 0, false, true);
  run_to_the_end();
  EXPECT_EQ(stats_->luma_mean, 64);
}

TEST_F(EncodeTest, AFormatThatIsNotAnalysedEndsTheBrightnessOfTheOneBeforeIt) {
  const auto same = plan();
  publish(same, 0, false, true);
  publish(same, 1, false, false);
  run_to_the_end();
  EXPECT_TRUE(std::isnan(stats_->luma_mean));
}

TEST_F(EncodeTest, AnEncoderThatFailsTwiceIsOpenedAgain) {
  use("mpeg4");
  const auto opened = plan();
  for (std::int64_t part = 0; part < 3; ++part) publish_range(opened, part * kTwoDays, 10);
  run_to_the_end();
  EXPECT_EQ(dropped(DropReason::kEncoder), 2u);
  EXPECT_EQ(counts().out, 28u);
  expect_every_frame_accounted_for();
}

// MPEG-4 part 2 counts time in frames: at a guessed rate of 25, not each of 30 frames a second gets
// its own tick.
TEST_F(EncodeTest, AnEncodersClockDoesNotRunAheadOfTheSource) {
  use("mpeg4");
  const auto opened = plan();
  opened->source_time_base = {1, 30};
  publish_range(opened, 0, 60);
  run_to_the_end();
  EXPECT_EQ(counts().out, 52u);  // two seconds, and two ticks ahead
  EXPECT_EQ(dropped(DropReason::kEncoder), 8u);
  expect_every_frame_accounted_for();
}

TEST_F(EncodeTest, AnEncoderThatGoesOnFailingEndsTheFeed) {
  use("mpeg4");
  const auto opened = plan();
  for (std::int64_t part = 0; part < 5; ++part) publish_range(opened, part * kTwoDays, 10);
  try {
    ReadyStage stage;
    run(stage);  // closes the ring itself
    ADD_FAILURE() << "it went on";
  } catch (const FeedError& error) {
    EXPECT_EQ(error.code(), FeedFault::kEncoder);
    EXPECT_THAT(error.what(), HasSubstr("encode live: mpeg4"));
    EXPECT_THAT(error.what(), HasSubstr("3 times in close succession"));
  }
  EXPECT_EQ(cancel_reason_, DropReason::kFeedFailed);
  EXPECT_TRUE(ring_.closed());
  EXPECT_EQ(dropped(DropReason::kEncoder), 3u);
  EXPECT_EQ(dropped(DropReason::kFeedFailed), 19u);
  expect_every_frame_accounted_for();
}

TEST_F(EncodeTest, AChangeOfFormatFlushesTheOldEncoderFirst) {
  use("libx264", {{"preset", "medium"}});
  const TempFolder folder;
  TestOutput file(output_to(folder / "out.ts"));
  PacketFanout fanout({&file.output.inlet()});
  file.start();
  publish_range(plan(64), 0, 20);
  publish_range(plan(96), 20, 20);
  ring_.close();
  ReadyStage stage;
  Encode encode(options_, 0, stats_->encode(0), *stats_, line_clock_, fanout);
  encode.run(ring_, stage, cancel_.get_token(), cancel_reason_);
  fanout.finish();
  file.join();
  EXPECT_EQ(counts().out, 40u);
  expect_every_frame_accounted_for();
  EXPECT_EQ(decoded_frames(folder / "out.ts"), 20u);
  EXPECT_EQ(decoded_frames(folder / "out.2.ts"), 20u);
}

TEST_F(EncodeTest, PacketsKnowHowLongTheirFramesLast) {
  const TempFolder folder;
  TestOutput file(output_to(folder / "out.mp4"));
  PacketFanout fanout({&file.output.inlet()});
  file.start();
  publish_range(plan(), 0, 10);
  ring_.close();
  ReadyStage stage;
  Encode encode(options_, 0, stats_->encode(0), *stats_, line_clock_, fanout);
  encode.run(ring_, stage, cancel_.get_token(), cancel_reason_);
  fanout.finish();
  file.join();
  EXPECT_DOUBLE_EQ(std::stod(probe_text(folder / "out.mp4", "v:0", "stream=duration")), 0.4);
}

TEST_F(EncodeTest, FramesThatWaitWhenItIsCancelledAreDroppedWithItsReason) {
  publish_range(plan(), 0, 10);
  cancel(DropReason::kReload);
  ReadyStage stage;
  run(stage);
  EXPECT_EQ(dropped(DropReason::kReload), 10u);
  expect_every_frame_accounted_for();
}

TEST_F(EncodeTest, FramesInsideTheEncoderAreDroppedWithTheReasonToo) {
  use("libx264", {{"preset", "medium"}});
  publish_range(plan(), 0, 10);
  ReadyStage stage;
  auto done = std::async(std::launch::async, [&] { run(stage); });
  EXPECT_TRUE(comes_true([&] { return (*stats_->ring_jobs())[index_of(RingState::kReady)] == 0; }));
  cancel(DropReason::kStop);
  done.get();
  EXPECT_EQ(dropped(DropReason::kStop), 10u);
  expect_every_frame_accounted_for();
}

TEST_F(EncodeTest, ACancelledJobStaysUntilItsConversionIsThrough) {
  publish(plan(), 0, true);
  StubbornStage stage;
  auto done = std::async(std::launch::async, [&] { run(stage); });
  EXPECT_TRUE(comes_true([&] { return stage.waiting == 1; }));
  EXPECT_EQ(stage.waited_for, 0);
  cancel(DropReason::kStop);
  done.get();
  EXPECT_EQ(stage.waited_for, 1);
  EXPECT_EQ(dropped(DropReason::kStop), 1u);
  expect_every_frame_accounted_for();
}

TEST_F(EncodeTest, FramesThatWereLostWithTheirDeviceAreDroppedAndTheNextEncoded) {
  const auto opened = plan();
  for (std::int64_t i = 0; i < 6; ++i) publish(opened, i, true);
  ring_.close();
  LossyStage stage;
  run(stage);
  EXPECT_EQ(dropped(DropReason::kDeviceLost), 2u);
  EXPECT_EQ(counts().out, 4u);
  expect_every_frame_accounted_for();
}

TEST_F(EncodeTest, AFrameThatCannotBeMaskedEndsTheFeedAndIsTheReason) {
  const auto opened = plan();
  masks_ = true;
  for (std::int64_t i = 0; i < 3; ++i) publish(opened, i, true);
  UnmaskedStage stage;
  try {
    run(stage);
    ADD_FAILURE() << "it went on";
  } catch (const FeedError& error) {
    EXPECT_EQ(error.code(), FeedFault::kMemory);
    EXPECT_THAT(error.what(), HasSubstr("encode live: a frame cannot be masked: "));
  }
  EXPECT_EQ(dropped(DropReason::kFeedFailed), 3u);
  expect_every_frame_accounted_for();
}

/// As after a GPU is lost when there is no memory for the frame elsewhere.
TEST_F(EncodeTest, AFrameWithoutMaskOrTargetIsDroppedAlone) {
  const auto opened = plan();
  for (std::int64_t i = 0; i < 3; ++i) publish(opened, i, true);
  ring_.close();
  UnmaskedStage stage;
  run(stage);
  EXPECT_EQ(dropped(DropReason::kDeviceLost), 3u);
  expect_every_frame_accounted_for();
}

TEST_F(EncodeTest, AConversionThatDoesNotEndEndsTheFeedAndIsTheReason) {
  const auto opened = plan();
  for (std::int64_t i = 0; i < 3; ++i) publish(opened, i, true);
  LateStage stage;
  try {
    run(stage);
    ADD_FAILURE() << "it went on";
  } catch (const FeedError& error) {
    EXPECT_EQ(error.code(), FeedFault::kDevice);
  }
  EXPECT_EQ(dropped(DropReason::kDeviceLost), 1u);
  EXPECT_EQ(dropped(DropReason::kFeedFailed), 2u);
  expect_every_frame_accounted_for();
}

}  // namespace
}  // namespace framelane
