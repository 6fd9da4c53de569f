// Not built for ThreadSanitizer: what it tests has one thread.
#include "daemon/stop_loss.hpp"
#include "tests/pipeline/measure/frame_lines.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace framelane {
namespace {

class StopLossTest : public ::testing::Test {
 protected:
  /// What has been lost since the test began.
  std::string loss() const {
    return StopLoss(*stats_).since(before_, std::chrono::milliseconds(7500));
  }
  void drop_a_frame(DropReason reason) {
    std::vector<FrameTicket> tickets(1);
    open_tickets(stats_, stats_->run(), testing::frame_lines(*stats_), tickets);
    tickets[0].drop(reason);
  }

  std::shared_ptr<FeedStats> stats_ =
      std::make_shared<FeedStats>("gate", std::vector<FeedStats::EncodeSpec>{{"live", false}},
                                  std::vector<std::string>{"hls", "rec"}, 1);
  StopLoss before_{*stats_};
};

TEST_F(StopLossTest, IsSilentWhenNothingWasLost) { EXPECT_EQ(loss(), ""); }

TEST_F(StopLossTest, CountsNothingThatWasLostForAnotherReason) {
  drop_a_frame(DropReason::kRingFull);
  stats_->outputs()[0]->packets_dropped[index_of(PacketDrop::kQueueFull)] = 3;
  EXPECT_EQ(loss(), "");
}

TEST_F(StopLossTest, FramesAloneAreTheEncodersFault) {
  drop_a_frame(DropReason::kStop);
  EXPECT_EQ(loss(),
            "stopped with 1 frame and 0 packets not delivered; 7.5 s were not enough for the "
            "encoder: a faster preset helps");
}

TEST_F(StopLossTest, SoundCountsToo) {
  AudioStats& sound = stats_->encode(0).audio;
  for (int i = 0; i < 3; ++i) {
    sound.in(sound.run());
    sound.drop(sound.run(), AudioDrop::kStop);
  }
  EXPECT_EQ(loss(),
            "stopped with 0 frames and 0 packets not delivered, 3 packets of sound not transcoded; "
            "7.5 s were not enough for the sound");
  drop_a_frame(DropReason::kStop);
  EXPECT_EQ(loss(),
            "stopped with 1 frame and 0 packets not delivered, 3 packets of sound not transcoded; "
            "7.5 s were not enough for the encoder: a faster preset helps");
}

TEST_F(StopLossTest, PacketsNameTheirOutputs) {
  stats_->outputs()[0]->packets_dropped[index_of(PacketDrop::kStop)] = 2;
  stats_->outputs()[1]->packets_dropped[index_of(PacketDrop::kStop)] = 5;
  EXPECT_EQ(loss(),
            "stopped with 0 frames and 7 packets not delivered; 7.5 s were not enough for output "
            "hls, rec: see whether a peer or disk is slow");
}

TEST_F(StopLossTest, LeavesOutWhatAnEarlierStopLost) {
  drop_a_frame(DropReason::kStop);
  before_ = StopLoss(*stats_);
  EXPECT_EQ(loss(), "");
}

}  // namespace
}  // namespace framelane
