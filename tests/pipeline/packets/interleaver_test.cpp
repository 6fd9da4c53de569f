// Not built for ThreadSanitizer: what it tests has one thread.
#include "pipeline/packets/interleaver.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace framelane {
namespace {

class InterleaverTest : public ::testing::Test {
 protected:
  InterleaverTest() {
    auto format = std::make_shared<MediaFormat>();
    format->video.time_base = {1, 1000};
    format->audio.emplace().time_base = {1, 8000};
    format_ = format;
  }
  /// It comes when it is due, unless `burst`: then with the one before.
  void add(StreamKind stream, std::int64_t time_ms, bool has_audio = true, bool burst = false) {
    if (!burst) now_ = std::chrono::steady_clock::time_point(std::chrono::milliseconds(time_ms));
    MediaPacket packet{
        .packet = make_packet(), .stream = stream, .format = format_, .queued_at = now_};
    packet.packet->dts = stream == StreamKind::kVideo ? time_ms : time_ms * 8;
    interleaver_.add(packet, has_audio);
  }
  /// The packets that come out now, as "v0 a20 ".
  std::string taken(bool flush = false) {
    std::string text;
    MediaPacket out{.packet = make_packet()};
    while (interleaver_.next(out, flush)) {
      const bool video = out.stream == StreamKind::kVideo;
      text += (video ? "v" : "a") + std::to_string(packet_time_us(out) / 1000) + " ";
    }
    return text;
  }
  MediaFormatRef format_;
  Interleaver interleaver_;
  std::chrono::steady_clock::time_point now_;
};

TEST_F(InterleaverTest, VideoAlonePassesAtOnce) {
  add(StreamKind::kVideo, 0, false);
  EXPECT_EQ(taken(), "v0 ");
}

TEST_F(InterleaverTest, AudioThatIsEarlyWaitsForItsVideo) {
  for (int ms : {0, 20, 40, 60}) add(StreamKind::kAudio, ms);
  EXPECT_EQ(taken(), "");
  add(StreamKind::kVideo, 0);
  add(StreamKind::kVideo, 40);
  EXPECT_EQ(taken(), "v0 a0 a20 v40 ");
}

TEST_F(InterleaverTest, VideoGoesOnWithoutAudioThatNeverComes) {
  for (int ms = 0; ms < 1000; ms += 40) add(StreamKind::kVideo, ms);
  EXPECT_EQ(taken(), "");
  add(StreamKind::kVideo, 1000);
  EXPECT_EQ(taken(), "v0 ");
}

/// All of a burst's video may come before its audio.
TEST_F(InterleaverTest, VideoOfABurstWaitsForItsAudio) {
  for (int ms = 0; ms < 5000; ms += 1000) add(StreamKind::kVideo, ms, true, true);
  EXPECT_EQ(taken(), "");
  for (int ms = 500; ms <= 4500; ms += 1000) add(StreamKind::kAudio, ms, true, true);
  EXPECT_EQ(taken(), "v0 a500 v1000 a1500 v2000 a2500 v3000 a3500 v4000 ");
}

TEST_F(InterleaverTest, VideoOfABurstWaitsNoLongerThanOtherVideo) {
  for (int ms = 0; ms < 5000; ms += 1000) add(StreamKind::kVideo, ms, true, true);
  EXPECT_EQ(taken(), "");
  now_ += std::chrono::seconds(1);
  add(StreamKind::kVideo, 5000, true, true);
  EXPECT_EQ(taken(), "v0 v1000 v2000 v3000 v4000 ");
}

TEST_F(InterleaverTest, VideoOfAFileWaitsForSeconds) {
  for (int ms = 0; ms < 10'000; ms += 1000) add(StreamKind::kVideo, ms, true, true);
  EXPECT_EQ(taken(), "");
  add(StreamKind::kVideo, 10'000, true, true);
  EXPECT_EQ(taken(), "v0 ");
}

TEST_F(InterleaverTest, LargeVideoWaitsOnlyWhileThereIsRoom) {
  const auto add_half = [this](std::int64_t time_ms) {
    MediaPacket packet{.packet = make_packet(), .format = format_};
    packet.packet->dts = time_ms;
    packet.packet->size = PacketQueue::kMostBytes / 2;
    interleaver_.add(packet, true);
  };
  add_half(0);
  EXPECT_EQ(taken(), "");
  add_half(40);
  EXPECT_EQ(taken(), "v0 ");
  add_half(80);
  EXPECT_EQ(taken(), "v40 ");
  EXPECT_EQ(interleaver_.clear(), 1u);
  add_half(120);
  EXPECT_EQ(taken(), "");
}

TEST_F(InterleaverTest, AudioGoesOnWithoutVideoThatNeverComes) {
  add(StreamKind::kAudio, 0);
  add(StreamKind::kAudio, 9'999);
  EXPECT_EQ(taken(), "");
  add(StreamKind::kAudio, 10'000);
  EXPECT_EQ(taken(), "a0 ");
}

TEST_F(InterleaverTest, FlushingWaitsForNothing) {
  add(StreamKind::kAudio, 20);
  add(StreamKind::kVideo, 0);
  add(StreamKind::kVideo, 40);
  EXPECT_EQ(taken(true), "v0 a20 v40 ");
}

TEST_F(InterleaverTest, ClearingCountsWhatIsForgotten) {
  add(StreamKind::kAudio, 20);
  add(StreamKind::kVideo, 0);
  EXPECT_EQ(interleaver_.clear(), 2u);
  EXPECT_EQ(taken(true), "");
}

}  // namespace
}  // namespace framelane
