#include "pipeline/feed/frame_dispatch.hpp"

extern "C" {
#include <libavutil/buffer.h>
#include <libavutil/log.h>
}

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/frames/frame_pool.hpp"
#include "pipeline/stage/device.hpp"
#include "tests/pipeline/encode/encode_plans.hpp"
#include "tests/pipeline/source/paper_stage.hpp"

namespace framelane {
namespace {

/// Hands frames of a live source to the encodes of a feed. "low" is down, since H.263 does not know
/// their size; "full" works.
class FrameDispatchTest : public ::testing::Test {
 protected:
  FrameDispatchTest() {
    spdlog::set_level(spdlog::level::off);
    av_log_set_level(AV_LOG_FATAL);
    options_.name = "gate";
    for (const char* codec : {"h263", "rawvideo"}) {
      options_.encodes.push_back(testing::encode_with({{codec, {}}}));
    }
    options_.encodes[kLow].name = "low";
    options_.encodes[kFull].name = "full";
    for (std::size_t i = 0; i < options_.encodes.size(); ++i) {
      auto fanout = std::make_shared<PacketFanout>();
      EarlyAudio early_audio(*fanout);
      const std::shared_ptr<void> owner;  // none: the tests change the options
      routes_.push_back({.options = {owner, &options_.encodes[i]},
                         .fanout = std::move(fanout),
                         .early_audio = std::move(early_audio),
                         .consumer = static_cast<int>(i),
                         .line = stats_->line(options_.encodes[i].name),
                         .opening = &calls_,
                         .pool = std::make_unique<FramePool>(),
                         .outage = std::make_unique<EncodeOutage>("gate", stats_->encode(i))});
    }
    start(*stage_);
  }

  /// Anew, with what `options_` say.
  void start(Stage& stage) {
    dispatch_.emplace(FrameDispatch::Parts{.options = options_,
                                           .stats = stats_,
                                           .routes = {&routes_[kLow], &routes_[kFull]},
                                           .ring = ring_,
                                           .stage = stage,
                                           .stage_calls = calls_,
                                           .deadlines = deadlines_,
                                           .line_clock = line_clock_,
                                           .cancel_reason = cancel_reason_},
                      std::stop_token());
  }

  InputFrame frame() {
    PooledImage image = allocate_image(pool_, PixelFormat::kI420, 64, 48);
    std::memset(image.buffer.get()->data, 64, image.buffer.get()->size);
    InputFrame frame;
    frame.image = as_const(image.image);
    frame.buffer = std::move(image.buffer);
    frame.color = {.matrix = Matrix::kBt601};
    frame.duration = 1;
    frame.decoded_at = std::chrono::steady_clock::now();
    return frame;
  }
  /// Dispatches the frame of this number. It came in time.
  void dispatch(std::int64_t number) {
    InputFrame next = frame();
    next.pts = number;
    next.decoded_at = begin_ + number * std::chrono::milliseconds(40);
    dispatch_->dispatch(std::move(next), source_);
  }
  /// Does the encodes' work. True if there is a frame for "full".
  bool encode() {
    bool had = false;
    for (const int consumer : {0, 1}) {
      const auto job = ring_.next(consumer);
      FrameTicket& ticket = (*job)->outputs[static_cast<std::size_t>(consumer)].ticket;
      had = static_cast<bool>(ticket);
      if (had) ticket.out();
    }
    return had;
  }
  std::uint64_t dropped(std::size_t encode, DropReason reason) const {
    return stats_->ledger().encodes[encode].dropped[index_of(reason)];
  }

  static constexpr std::size_t kLow = 0;
  static constexpr std::size_t kFull = 1;
  FeedOptions options_;
  const std::shared_ptr<FeedStats> stats_ = std::make_shared<FeedStats>(
      "gate", std::vector<FeedStats::EncodeSpec>{{"low"}, {"full"}}, std::vector<std::string>{}, 1);
  const SourceInfo source_{.time_base = {1, 25},
                           .frame_rate = {25, 1},
                           .live = true,
                           .decoder = "rawvideo",
                           .media = nullptr};
  Interrupt calls_{std::stop_token()};
  std::vector<EncodeRoute> routes_;
  FramePool pool_;
  FeedDeadlines deadlines_;
  LineClock line_clock_;
  const std::shared_ptr<Device> device_ = make_cpu_device();
  const std::unique_ptr<Stage> stage_ = device_->make_stage(*stats_, {});
  FrameRing ring_{1, 2, *stats_};
  std::atomic<DropReason> cancel_reason_{DropReason::kStop};
  std::optional<FrameDispatch> dispatch_;
  const std::chrono::steady_clock::time_point begin_ =
      std::chrono::steady_clock::now() - std::chrono::hours(1);
};

// An encode that fails closes the ring. The feed is cancelled a moment later.
TEST_F(FrameDispatchTest, AFrameThatFindsTheRingClosedIsDroppedForTheReasonOfTheCancel) {
  cancel_reason_ = DropReason::kFeedFailed;
  ring_.close();
  dispatch_->dispatch(frame(), source_);
  EXPECT_EQ(dropped(kLow, DropReason::kEncoder), 1U);
  EXPECT_EQ(dropped(kFull, DropReason::kFeedFailed), 1U);
  EXPECT_EQ(stats_->ledger().encodes[kFull].in_flight, 0);
}

TEST_F(FrameDispatchTest, AnEncodeThatComesBackTellsWhichFrameItLostLast) {
  dispatch(0);
  encode();
  dispatch(1);
  encode();
  EXPECT_EQ(dropped(kLow, DropReason::kEncoder), 2U);
  options_.encodes[kLow].codecs = options_.encodes[kFull].codecs;
  dispatch(100'000);  // more than an hour later
  ASSERT_TRUE(routes_[kLow].plan);
  EXPECT_EQ(routes_[kLow].plan->media->lost_until, std::chrono::milliseconds(40));
  EXPECT_EQ(routes_[kFull].plan->media->lost_until, std::nullopt);
  encode();
}

TEST_F(FrameDispatchTest, AClockIsDrawnWithTheTimeWhenThePictureWasTaken) {
  using std::chrono::duration_cast;
  using std::chrono::system_clock;
  OverlayOptions clock;
  clock.text = "%M";
  clock.size = 0.5;
  options_.encodes[kFull].overlays = {clock};
  const auto now = system_clock::now();
  const auto taken = std::chrono::floor<std::chrono::minutes>(now) - std::chrono::minutes(29) -
                     std::chrono::seconds(30);
  const auto zero = std::chrono::steady_clock::now() - (now - taken);
  line_clock_.set_zero(duration_cast<std::chrono::microseconds>(zero.time_since_epoch()).count());
  dispatch_->dispatch(frame(), source_);
  const auto job = ring_.next(kFull);
  ASSERT_TRUE(job);
  JobOutput& output = (*job)->outputs[kFull];
  ASSERT_EQ(stage_->wait(**job, {}, std::chrono::steady_clock::now() + std::chrono::minutes(1)),
            Stage::Wait::kReady);
  output.ticket.drop(DropReason::kStop);
  const FrameFormat& target = routes_[kFull].plan->target;
  const auto drawn = [&](system_clock::time_point time) {
    FrameOverlays overlays(options_.encodes[kFull].overlays, {target.width, target.height}, {1, 1},
                           target.layout, target.color);
    return overlays.at(time)->front()->bytes();
  };
  ASSERT_TRUE(output.overlays);
  EXPECT_EQ(output.overlays->front()->bytes(), drawn(taken));
  EXPECT_NE(output.overlays->front()->bytes(), drawn(now));
}

/// Notes the mask that it is to cover frames with.
class MaskingStage final : public testing::PaperStage {
 public:
  PlanRef prepare(std::span<const Conversion>, FrameMemory, bool, std::span<const FrameMemory>,
                  std::shared_ptr<const PictureMask> mask) override {
    prepared = std::move(mask);
    return nullptr;
  }
  std::shared_ptr<const PictureMask> prepared;
};

TEST_F(FrameDispatchTest, WhatTheStageConvertsIsMaskedByIt) {
  options_.input.mask.push_back({.polygon = {{0, 0}, {0.5, 0}, {0.5, 1}, {0, 1}}});
  MaskingStage stage;
  start(stage);
  InputFrame decoded = frame();
  decoded.memory = FrameMemory::kDevice;
  dispatch_->dispatch(std::move(decoded), source_);
  EXPECT_TRUE(stage.prepared);
  {
    const auto job = ring_.next(kFull);
    ASSERT_TRUE(job);
    EXPECT_TRUE((*job)->masks);
    EXPECT_TRUE((*job)->outputs[kFull].converts);
    EXPECT_EQ((*job)->input.image.row(0, 0)[0], 64);
    (*job)->outputs[kFull].ticket.drop(DropReason::kStop);
  }
  dispatch_.reset();
}

TEST_F(FrameDispatchTest, WhatAnEncodeGetsAsItIsIsMaskedBefore) {
  options_.input.mask.push_back({.polygon = {{0, 0}, {0.5, 0}, {0.5, 1}, {0, 1}}});
  start(*stage_);
  InputFrame decoded = frame();
  const BufferRef reference = decoded.buffer;  // the decoder's
  const std::uint8_t* const data = decoded.image.row(0, 0);
  dispatch_->dispatch(std::move(decoded), source_);
  EXPECT_EQ(data[0], 64);
  const auto job = ring_.next(kFull);
  ASSERT_TRUE(job);
  EXPECT_FALSE((*job)->masks);
  EXPECT_FALSE((*job)->outputs[kFull].converts);
  const std::uint8_t* const row = (*job)->input.image.row(0, 0);
  EXPECT_EQ(std::count(row, row + 32, 16), 32);
  EXPECT_EQ(std::count(row + 32, row + 64, 64), 32);
  (*job)->outputs[kFull].ticket.drop(DropReason::kStop);
}

// The next one is a keyframe in encodes of any rate.
TEST_F(FrameDispatchTest, WhereTheRingHadNoPlaceAnEncodeOfALowerRateTakesTheNextFrame) {
  options_.encodes[kFull].rate = Rational{5};
  options_.encodes[kFull].gop = std::chrono::seconds(1);
  start(*stage_);
  dispatch(20);
  dispatch(24);
  EXPECT_EQ(dropped(kFull, DropReason::kRate), 1U);
  dispatch(25);
  EXPECT_EQ(dropped(kFull, DropReason::kRingFull), 1U);
  EXPECT_TRUE(encode());
  dispatch(26);
  EXPECT_TRUE(encode());
  dispatch(27);
  EXPECT_EQ(dropped(kFull, DropReason::kRate), 2U);
}

}  // namespace
}  // namespace framelane
