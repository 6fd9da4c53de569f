// A feed that gets other options in the moments in which something else happens to it, too.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "pipeline/base/abandoned_threads.hpp"
#include "pipeline/encode/snapshot.hpp"
#include "pipeline/feed/feed.hpp"
#include "tests/pipeline/base/wait.hpp"
#include "tests/pipeline/encode/held_encoder.hpp"
#include "tests/pipeline/feed/feed_fixture.hpp"
#include "tests/pipeline/output/output_fixture.hpp"

namespace framelane {
namespace {

using namespace testing;  // of framelane

/// How many threads of this process have this name.
int count_threads(const std::string& name) {
  int count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream comm(task.path() / "comm");  // the thread may have ended meanwhile
    std::string one;
    if (std::getline(comm, one) && one == name) ++count;
  }
  return count;
}

/// A camera whose stream is copied: 25 pictures a second, for 20 s and then again.
class CopiedFeedTest : public FeedTest {
 protected:
  CopiedFeedTest() {
    options_.input.url = file("camera.mkv");
    options_.input.loop = true;
    options_.input.pace = InputOptions::Pace::kRealtime;
    options_.once = false;
    add_copy("copy");
    add_output("kept", "copy", file("kept.mkv"));
    add_output("out", "copy", file("old.mkv"));
  }
  /// With a keyframe every so many pictures.
  void make_camera(int gop) {
    ffmpeg(
        "-f lavfi -i testsrc=size=64x48:rate=25:duration=20 -c:v libx264 -preset ultrafast "
        "-bf 0 -sc_threshold 0 -g " +
        std::to_string(gop) + " '" + options_.input.url + "'");
  }
  /// Watches the feed meanwhile, as the supervisor does.
  bool exists_soon(const std::string& name) {
    return comes_true([&] { return feed_->outcome() || std::filesystem::exists(file(name)); }) &&
           !feed_->outcome();
  }
  void move_output_to(const std::string& name) {
    FeedOptions next = options_;
    next.outputs[1].url = file(name);
    ASSERT_TRUE(change(next));
  }
};

TEST_F(CopiedFeedTest, AnOutputThatIsReplacedHasThePicturesUntilTheKeyframe) {
  deadlines_.drain = 500ms;
  make_camera(40);
  start();
  ASSERT_TRUE(exists_soon("old.mkv.part"));
  move_output_to("new.mkv");
  ASSERT_TRUE(exists_soon("new.mkv.part"));
  feed_->drain();
  EXPECT_EQ(wait().kind, Feed::Outcome::Kind::kStopped);
  EXPECT_EQ(stats_->outputs()[1]->lost_at_stop(), 0U);
  EXPECT_EQ(decoded_frames(file("old.mkv")), 40U);
  EXPECT_EQ(decoded_frames(file("old.mkv")) + decoded_frames(file("new.mkv")),
            decoded_frames(file("kept.mkv")));
}

TEST_F(CopiedFeedTest, HoweverOftenAnOutputChangesBetweenTwoKeyframesOnlyTheLastOneWaits) {
  make_camera(100);
  start();
  ASSERT_TRUE(exists_soon("old.mkv.part"));
  for (int i = 0; i < 8; ++i) move_output_to("new" + std::to_string(i) + ".mkv");
  ASSERT_TRUE(comes_true([] { return count_threads("out-out") == 2; }));
  ASSERT_TRUE(exists_soon("new7.mkv.part"));
  feed_->drain();
  EXPECT_EQ(wait().kind, Feed::Outcome::Kind::kStopped);
  EXPECT_EQ(stats_->outputs()[1]->lost_at_stop(), 0U);
  for (int i = 0; i < 7; ++i) {
    EXPECT_FALSE(std::filesystem::exists(file("new" + std::to_string(i) + ".mkv"))) << i;
  }
  EXPECT_EQ(decoded_frames(file("old.mkv")) + decoded_frames(file("new7.mkv")),
            decoded_frames(file("kept.mkv")));
}

TEST_F(CopiedFeedTest, AnOutputThatIsReplacedDoesNotWaitForAKeyframeForEver) {
  deadlines_.drain = 100ms;
  deadlines_.keyframe = 200ms;
  make_camera(500);
  start();
  ASSERT_TRUE(exists_soon("old.mkv.part"));
  move_output_to("new.mkv");
  ASSERT_TRUE(exists_soon("old.mkv"));
  EXPECT_FALSE(std::filesystem::exists(file("new.mkv.part")));
  ASSERT_TRUE(comes_true([this] { return stats_->outputs()[1]->lost_at_stop() > 0; }));
  feed_->drain();
  EXPECT_EQ(wait().kind, Feed::Outcome::Kind::kStopped);
}

// Producers wait for it, so that no keyframe comes.
TEST_F(CopiedFeedTest, AnOutputThatTakesNothingIsReplacedAllTheSame) {
  deadlines_.drain = 100ms;
  deadlines_.keyframe = 1h;
  options_.on_full = OnFull::kBlock;
  OutputOptions& out = options_.outputs[1];
  ASSERT_EQ(::mkfifo(file("fifo").c_str(), 0600), 0);
  out.url = file("fifo");  // nobody reads it
  out.format = "matroska";
  out.timeout = 1h;
  out.queue = 2;
  make_camera(10);
  start();
  ASSERT_TRUE(comes_true([this] { return stats_->outputs()[1]->queue_packets == 2; }));
  move_output_to("new.mkv");
  EXPECT_TRUE(exists_soon("new.mkv.part"));
}

// The file of its segment is a FIFO: open() waits for a reader, as it would for a file server that
// does not answer.
TEST_F(CopiedFeedTest, AnOutputDoesNotWaitForAnotherThatHangsWhenTheFeedIsCancelled) {
  deadlines_.after_cancel = 1s;
  const std::string fifo = file("part0.ts.tmp");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  options_.outputs[1].url = file("list.m3u8");
  options_.outputs[1].options = {{"hls_segment_filename", file("part%d.ts"), false}};
  options_.outputs[1].queue = 20;
  make_camera(10);
  start();
  const auto too_many = index_of(PacketDrop::kQueueFull);
  ASSERT_TRUE(comes_true([&] { return stats_->outputs()[1]->packets_dropped[too_many] > 0; }));
  move_output_to("new.mkv");
  const std::uint64_t abandoned = threads_abandoned();
  feed_.reset();
  EXPECT_EQ(threads_abandoned(), abandoned + 1);
  const int reader = ::open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  EXPECT_TRUE(comes_true([this] { return stats_.use_count() == 1; }));
  ::close(reader);
  EXPECT_FALSE(std::filesystem::exists(file("new.mkv")));
}

TEST_F(FeedTest, WhatComesWhenTheSourceHasEndedEndsWithTheOthers) {
  HeldEncoder encoder;
  // Its threads would have the name of the source's, which opens it.
  add_encode("live", "libx264", {{"preset", "ultrafast"}, {"threads", "1"}});
  add_output("live", "live", file("live.mkv"));
  options_.ring = static_cast<int>(kClipFrames);
  encoder.hold();
  start();
  ASSERT_TRUE(comes_true([this] { return stats_->ledger().frames_in == kClipFrames; }));
  ASSERT_TRUE(comes_true([] { return count_threads("source") == 0; }));
  const FeedOptions first = options_;
  add_copy("copy");
  add_encode("late", "libx264");
  add_output("copy", "copy", file("copy.mkv"));
  add_output("late", "late", file("late.mkv"));
  const FeedOptions next = std::exchange(options_, first);
  EXPECT_TRUE(change(next));
  encoder.release();
  EXPECT_EQ(wait().kind, Feed::Outcome::Kind::kEnded);
  expect_every_frame_accounted_for();
  EXPECT_EQ(decoded_frames(file("live.mkv")), kClipFrames);
}

// The keyframes that a snapshot is made of.
TEST_F(FeedTest, AfterAnotherMaskNoPictureOfBeforeIsShown) {
  ffmpeg("-f lavfi -i color=black:size=64x48:rate=25:duration=5 -c:v libx264 '" +
         file("black.mkv") + "'");
  options_.input.url = file("black.mkv");
  options_.input.loop = true;
  options_.input.pace = InputOptions::Pace::kRealtime;
  options_.once = false;
  add_encode("live", "mjpeg");
  tap_ = std::make_shared<SnapshotTap>();
  start();
  const auto has_picture = [this] { return tap_->keyframe(true).packet != nullptr; };
  const auto luma = [this] { return decode_keyframe(tap_->keyframe(true), 64 * 48)->data[0][0]; };
  for (const std::uint8_t white : {0, 255, 0, 255}) {
    FeedOptions next = options_;
    next.input.mask = {
        {.polygon = {{0, 0}, {1, 0}, {1, 1}, {0, 1}}, .color = {white, white, white}}};
    ASSERT_TRUE(change(next));
    ASSERT_TRUE(comes_true(has_picture));
    EXPECT_NEAR(luma(), white == 0 ? 0 : 255, 20);
  }
}

}  // namespace
}  // namespace framelane
