// Not built for ThreadSanitizer: what it tests has one thread.
#include "pipeline/feed/early_audio.hpp"

#include <gtest/gtest.h>

#include <memory>

#include "pipeline/packets/output_inlet.hpp"

namespace framelane {
namespace {

class EarlyAudioTest : public ::testing::Test {
 protected:
  std::uint64_t lost() const { return stats_.packets_dropped[index_of(PacketDrop::kWaitKeyframe)]; }

  const PacketPtr packet_ = make_packet();
  const MediaFormatRef format_ = std::make_shared<MediaFormat>();
  OutputStats stats_{"file"};
  OutputInlet inlet_{2000, stats_, true, [](const MediaFormat&) { return true; }};
  PacketFanout fanout_{{&inlet_}};
  EarlyAudio audio_{fanout_};
};

TEST_F(EarlyAudioTest, IsPublishedOnceInOrderWithItsFormat) {
  for (packet_->pts = 0; packet_->pts < 2; ++packet_->pts) audio_.hold(*packet_);
  for (int i = 0; i < 2; ++i) audio_.publish(format_, {});
  inlet_.finish();
  MediaPacket packet;
  for (std::int64_t pts = 0; pts < 2; ++pts) {
    ASSERT_EQ(inlet_.pop(packet, std::chrono::milliseconds(0), {}), PacketQueue::Pop::kPacket);
    EXPECT_EQ(packet.packet->pts, pts);
    EXPECT_EQ(packet.stream, StreamKind::kAudio);
    EXPECT_EQ(packet.format, format_);
  }
  EXPECT_EQ(inlet_.pop(packet, std::chrono::milliseconds(0), {}), PacketQueue::Pop::kEnd);
  EXPECT_EQ(lost(), 0u);
}

TEST_F(EarlyAudioTest, IsCountedWhenTheSourceEndsBeforeItsVideo) {
  for (int i = 0; i < 3; ++i) audio_.hold(*packet_);
  audio_.drop();
  audio_.drop();
  EXPECT_EQ(lost(), 3u);
}

TEST_F(EarlyAudioTest, IsLostAndCountedWhereItWouldGrowWithoutEnd) {
  for (int i = 0; i < 1030; ++i) audio_.hold(*packet_);
  EXPECT_EQ(lost(), 6u);
  audio_.publish(format_, {});
  EXPECT_EQ(stats_.queue_packets, 1024u);
}

}  // namespace
}  // namespace framelane
