// Not built for ThreadSanitizer: what it tests has one thread.
// The trial by itself, without any decoder; what a Decoder makes of it is in nvdec_test.cpp.
#include "pipeline/source/nvdec_trial.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "tests/pipeline/base/log_capture.hpp"
#include "tests/pipeline/source/paper_stage.hpp"

namespace framelane {
namespace {

using Kind = InputOptions::DecoderKind;
using Numbers = std::vector<std::int64_t>;

class NvdecTrialTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    if (!stage.decode_context(why)) GTEST_SKIP() << "this FFmpeg is built without CUDA";
    codec = trial.begin(AV_CODEC_ID_H264);
    ASSERT_NE(codec, nullptr);
    ASSERT_TRUE(trial.active());
  }
  void send(std::int64_t first, std::int64_t last) {
    for (std::int64_t number = first; number <= last; ++number) {
      trial.remember_for_replay(packet.get(), number);
    }
  }
  bool receive(AVPixelFormat format = AV_PIX_FMT_CUDA) {
    frame->format = format;
    return trial.frame_came(*frame, *codec);
  }
  /// The numbers of the packets that software gets after the trial.
  Numbers replayed() {
    Numbers numbers;
    const std::optional<std::int64_t> first = trial.begin_replay();
    while (const auto next = trial.next_replay()) numbers.push_back(next->number);
    EXPECT_EQ(first, numbers.empty() ? std::nullopt : std::optional(numbers.front()));
    return numbers;
  }

  FeedStats stats{"feed", {}, {}, 1};
  testing::PaperStage stage;
  NvdecTrial trial{Kind::kAuto, &stage, 8, stats};
  const AVCodec* codec = nullptr;
  const PacketPtr packet = make_packet();
  const FramePtr frame = make_frame();
};

TEST_F(NvdecTrialTest, BeforeTheFirstFrameEveryPacketIsReplayed) {
  send(1, 5);
  trial.leave(FeedFault::kDevice, "it fails");
  EXPECT_FALSE(trial.active());
  EXPECT_EQ(replayed(), (Numbers{1, 2, 3, 4, 5}));
  EXPECT_EQ(stats.status().decoder_reason, "it fails");
}

TEST_F(NvdecTrialTest, AfterItOnlyTheLastPacketIs) {
  send(1, 5);
  EXPECT_TRUE(receive());
  EXPECT_TRUE(trial.proven());
  send(6, 9);
  trial.leave(FeedFault::kDevice, "it fails");
  EXPECT_EQ(replayed(), (Numbers{9}));
}

TEST_F(NvdecTrialTest, ThePacketOfALaterFrameIsNotReplayed) {
  send(1, 1);
  EXPECT_TRUE(receive());
  send(2, 2);
  EXPECT_FALSE(receive());
  trial.leave(FeedFault::kDevice, "it fails");
  EXPECT_EQ(replayed(), Numbers{});
}

TEST_F(NvdecTrialTest, ARefusedPacketIsReplayedThoughEarlierFramesComeAfterIt) {
  send(1, 3);
  EXPECT_TRUE(trial.begin_emptying());
  EXPECT_TRUE(receive());
  EXPECT_FALSE(receive());
  EXPECT_FALSE(trial.begin_emptying());
  trial.leave(FeedFault::kConfiguration, "it refuses");
  EXPECT_EQ(replayed(), (Numbers{3}));
}

TEST_F(NvdecTrialTest, DamagedPacketsAreNotReplayed) {
  send(1, 3);
  trial.forget_damaged();
  send(4, 4);
  trial.leave(FeedFault::kDevice, "it fails");
  EXPECT_EQ(replayed(), (Numbers{1, 2, 4}));
}

TEST_F(NvdecTrialTest, PacketsThatBringNoFrameAreForgottenInTheEnd) {
  send(1, 70);
  trial.leave(FeedFault::kDevice, "it fails");
  EXPECT_EQ(replayed(), (Numbers{65, 66, 67, 68, 69, 70}));
}

TEST_F(NvdecTrialTest, PacketsBeforeAFlushAreNotReplayed) {
  send(1, 3);
  trial.forget_packets();
  trial.leave(FeedFault::kDevice, "it fails");
  EXPECT_EQ(replayed(), Numbers{});
}

TEST_F(NvdecTrialTest, TheFirstFailedCallEndsAnUnprovenTrial) {
  EXPECT_TRUE(trial.must_end(AVERROR_EXTERNAL));
}

TEST_F(NvdecTrialTest, ThreeFailedCallsInARowEndAProvenTrial) {
  receive();
  EXPECT_FALSE(trial.must_end(AVERROR_EXTERNAL));
  EXPECT_FALSE(trial.must_end(AVERROR_EXTERNAL));
  receive();
  EXPECT_FALSE(trial.must_end(AVERROR_EXTERNAL));
  EXPECT_FALSE(trial.must_end(AVERROR_EXTERNAL));
  EXPECT_TRUE(trial.must_end(AVERROR_EXTERNAL));
}

TEST_F(NvdecTrialTest, ALackOfSurfacesEndsIt) {
  receive();
  EXPECT_TRUE(trial.must_end(AVERROR(ENOMEM)));
}

TEST_F(NvdecTrialTest, AFailedCallEndsItWhenTheStageHasLeftTheGpu) {
  receive();
  stage.frames_to_take = 0;
  EXPECT_TRUE(trial.must_end(AVERROR_EXTERNAL));
}

TEST_F(NvdecTrialTest, DamageInTheStreamDoesNotEndIt) {
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(trial.must_end(AVERROR_INVALIDDATA));
}

TEST_F(NvdecTrialTest, AFrameInHostMemoryEndsIt) {
  EXPECT_TRUE(receive(AV_PIX_FMT_YUV420P));
  EXPECT_FALSE(trial.active());
  EXPECT_EQ(stats.status().decoder_reason, "FFmpeg decodes h264 without asking for it");
}

TEST_F(NvdecTrialTest, AReasonIsLoggedOnce) {
  const testing::LogCapture log;
  trial.leave(FeedFault::kDevice, "it fails");
  trial.begin(AV_CODEC_ID_H264);
  trial.leave(FeedFault::kDevice, "it fails");
  EXPECT_EQ(log.count("decoding in software, because it fails"), 1u);
}

TEST_F(NvdecTrialTest, ACodecThatNvdecDoesNotKnowIsNotTried) {
  EXPECT_EQ(trial.begin(AV_CODEC_ID_FFV1), nullptr);
  EXPECT_FALSE(trial.active());
  EXPECT_EQ(stats.status().decoder_reason, "FFmpeg has no NVDEC decoder for ffv1");
}

TEST_F(NvdecTrialTest, SoftwareByConfigurationIsNotTriedAndHasNoReason) {
  stats.set_decoder_reason("of before");
  NvdecTrial none(Kind::kSoftware, &stage, 8, stats);
  EXPECT_EQ(none.begin(AV_CODEC_ID_H264), nullptr);
  EXPECT_EQ(stats.status().decoder_reason, "");
}

TEST_F(NvdecTrialTest, WhereNvdecIsAskedForLeavingFailsTheFeed) {
  NvdecTrial required(Kind::kNvdec, &stage, 8, stats);
  required.begin(AV_CODEC_ID_H264);
  try {
    required.leave(FeedFault::kDevice, "it fails");
    FAIL() << "nothing was thrown";
  } catch (const FeedError& error) {
    EXPECT_EQ(error.code(), FeedFault::kDevice);
    EXPECT_NE(std::string(error.what()).find("it fails"), std::string::npos);
  }
}

}  // namespace
}  // namespace framelane
