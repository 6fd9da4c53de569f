#include "pipeline/packets/packet_fanout.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "pipeline/packets/interleaver.hpp"
#include "tests/pipeline/base/wait.hpp"
#include "tests/pipeline/output/output_fixture.hpp"

namespace framelane {
namespace {

using namespace testing;  // of framelane

TEST(PacketFanoutTest, EveryOutputGetsEveryPacket) {
  const TempFolder folder;
  TestOutput file(output_to(folder / "out.ts"));
  TestOutput null(output_to("null:"));
  PacketFanout fanout({&file.output.inlet(), &null.output.inlet()});
  file.start();
  null.start();
  const Clip clip = encode_clip({});
  for (const ClipPacket& p : clip.packets) fanout.publish(*p.packet, p.stream, clip.format, {});
  fanout.finish();
  file.join();
  null.join();
  EXPECT_EQ(decoded_frames(folder / "out.ts"), 50u);
  EXPECT_EQ(null.feed.steps[index_of(StageStep::kMux)].snapshot().count, 50u);
}

TEST(PacketFanoutTest, AudioAndVideoMayComeFromTwoThreads) {
  const TempFolder folder;
  TestOutput file(output_to(folder / "out.mkv"));
  PacketFanout fanout({&file.output.inlet()});
  file.start();
  const Clip clip = encode_clip({.frames = 250, .audio = "aac"});
  const auto publish_all = [&](StreamKind kind) {
    for (const ClipPacket& p : clip.packets) {
      if (p.stream == kind) fanout.publish(*p.packet, kind, clip.format, {});
    }
  };
  {
    std::jthread audio([&] { publish_all(StreamKind::kAudio); });
    std::jthread video([&] { publish_all(StreamKind::kVideo); });
  }
  fanout.finish();
  file.join();
  // AAC's first packet comes before the first frame's.
  EXPECT_LE(file.dropped(PacketDrop::kWaitKeyframe), 1u);
  EXPECT_EQ(file.feed.steps[index_of(StageStep::kMux)].snapshot().count + file.dropped(),
            clip.packets.size());
  EXPECT_EQ(decoded_frames(folder / "out.mkv"), 250u);
}

// Sound comes from another thread than pictures.
TEST(PacketFanoutTest, SoundOfBeforeTheKeyframeIsForTheOutputThatIsReplaced) {
  const Clip clip = encode_clip({.frames = 50, .gop = 10, .audio = "aac"});
  OutputStats stats("out");
  const auto takes_all = [](const MediaFormat&) { return true; };
  OutputInlet old(512, stats, false, takes_all);
  OutputInlet next(512, stats, false, takes_all);
  PacketFanout fanout({&old});
  const auto publish = [&](const ClipPacket& p) {
    fanout.publish(*p.packet, p.stream, clip.format, {});
  };
  const auto count = [](OutputInlet& inlet) {
    MediaPacket packet;
    std::size_t packets = 0;
    while (inlet.pop(packet, 0ms, {}) == PacketQueue::Pop::kPacket) ++packets;
    return packets;
  };
  const auto time = [&](const ClipPacket& p) {
    return packet_time_us(*p.packet, p.stream, *clip.format);
  };
  std::vector<const ClipPacket*> keyframes;
  for (const ClipPacket& p : clip.packets) {
    if (is_keyframe(*p.packet, p.stream)) keyframes.push_back(&p);
  }
  ASSERT_GE(keyframes.size(), 3U);
  const auto sound_after = [&](const ClipPacket& keyframe) {
    return std::ranges::find_if(clip.packets, [&](const ClipPacket& p) {
      return p.stream == StreamKind::kAudio && time(p) >= time(keyframe);
    });
  };
  publish(*keyframes[0]);
  fanout.replace(old, next);
  publish(*keyframes[1]);
  EXPECT_EQ(count(old), 1U);
  EXPECT_EQ(count(next), 1U);
  publish(*sound_after(*keyframes[0]));
  EXPECT_EQ(count(old), 1U);
  EXPECT_EQ(count(next), 0U);
  EXPECT_FALSE(old.left());
  publish(*sound_after(*keyframes[1]));
  EXPECT_TRUE(old.left());
  EXPECT_EQ(count(next), 1U);
}

/// Three packets have come, of which the first is a keyframe, and the output wants them again.
class PacketFanoutResumeTest : public ::testing::Test {
 protected:
  void come(int capacity = 512, bool takes_audio = true) {
    inlet_ = std::make_unique<OutputInlet>(capacity, stats_, false,
                                           [=](const MediaFormat&) { return takes_audio; });
    fanout_ = std::make_unique<PacketFanout>(std::vector<OutputInlet*>{inlet_.get()});
    for (std::size_t i = 0; i < 3; ++i) publish(i, clip_.format);
    ASSERT_EQ(pop_all(), 3u);
    inlet_->request_resume();
  }
  void publish(std::size_t index, const MediaFormatRef& format) {
    fanout_->publish(*clip_.packets[index].packet, StreamKind::kVideo, format, {});
  }
  std::size_t pop_all() {
    MediaPacket packet;
    std::size_t count = 0;
    while (inlet_->pop(packet, 0ms, {}) == PacketQueue::Pop::kPacket) ++count;
    return count;
  }

  const Clip clip_ = encode_clip({.frames = 6, .gop = 4});
  OutputStats stats_{"out"};
  std::unique_ptr<OutputInlet> inlet_;
  std::unique_ptr<PacketFanout> fanout_;
};

TEST_F(PacketFanoutResumeTest, TheGroupComesAgainWhenItGoesOn) {
  come();
  publish(3, clip_.format);
  EXPECT_EQ(pop_all(), 4u);
}

TEST_F(PacketFanoutResumeTest, AGroupThatIsOverDoesNotComeAgain) {
  come();
  publish(4, clip_.format);  // a keyframe
  EXPECT_EQ(pop_all(), 1u);
}

TEST_F(PacketFanoutResumeTest, AGroupOfAnotherConnectionDoesNotComeAgain) {
  come();
  publish(3, later(clip_, 0).format);
  EXPECT_EQ(pop_all(), 1u);
}

TEST_F(PacketFanoutResumeTest, AGroupOfAnEncoderThatIsClosedDoesNotComeAgain) {
  come();
  fanout_->end_group();
  publish(3, clip_.format);
  EXPECT_EQ(pop_all(), 1u);
}

TEST_F(PacketFanoutResumeTest, AGroupThatTheQueueCannotHoldDoesNotComeAgain) {
  come(3);
  publish(3, clip_.format);
  EXPECT_EQ(pop_all(), 1u);
  EXPECT_EQ(stats_.packets_dropped[index_of(PacketDrop::kQueueFull)], 0u);
}

TEST_F(PacketFanoutResumeTest, SoundThatTheOutputLeavesOutNeedsNoRoom) {
  come(4, false);
  for (int i = 0; i < 10; ++i) {
    fanout_->publish(*clip_.packets[1].packet, StreamKind::kAudio, clip_.format, {});
  }
  pop_all();
  inlet_->request_resume();
  publish(3, clip_.format);
  EXPECT_EQ(pop_all(), 4u);
}

/// Keyframes at 0 and 4. One output is there from the beginning; others come and go.
class ChangingFanoutTest : public ::testing::Test {
 protected:
  struct Other {
    OutputStats stats{"other"};
    OutputInlet inlet{512, stats, false, [](const MediaFormat&) { return true; }};
  };
  void publish(std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i) {
      fanout_.publish(*clip_.packets[i].packet, StreamKind::kVideo, clip_.format, {});
    }
  }
  /// The frames that have come to an output.
  std::vector<int> frames(OutputInlet& inlet) const {
    std::vector<int> frames;
    MediaPacket packet;
    while (inlet.pop(packet, 0ms, {}) == PacketQueue::Pop::kPacket) {
      for (std::size_t i = 0; i < clip_.packets.size(); ++i) {
        if (clip_.packets[i].packet->pts == packet.packet->pts) {
          frames.push_back(static_cast<int>(i));
        }
      }
    }
    return frames;
  }

  const Clip clip_ = encode_clip({.frames = 8, .gop = 4});
  Other first_, second_, third_;
  PacketFanout fanout_{{&first_.inlet}};
};

TEST_F(ChangingFanoutTest, OneThatComesBeginsWithThePresentGroup) {
  publish(0, 2);
  fanout_.add(second_.inlet);
  publish(2, 4);
  EXPECT_EQ(frames(first_.inlet), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(frames(second_.inlet), (std::vector<int>{0, 1, 2, 3}));
}

TEST_F(ChangingFanoutTest, OneThatGoesGetsNothingMoreAndEnds) {
  fanout_.add(second_.inlet);
  publish(0, 2);
  fanout_.remove(first_.inlet);
  publish(2, 4);
  EXPECT_EQ(frames(first_.inlet), (std::vector<int>{0, 1}));
  EXPECT_EQ(frames(second_.inlet), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_TRUE(first_.inlet.left());
  MediaPacket packet;
  EXPECT_EQ(first_.inlet.pop(packet, 0ms, {}), PacketQueue::Pop::kEnd);
  EXPECT_EQ(first_.stats.packets_dropped[index_of(PacketDrop::kStop)], 0u);
}

TEST_F(ChangingFanoutTest, AtAKeyframeOneTakesTheOthersPlace) {
  publish(0, 2);
  fanout_.replace(first_.inlet, second_.inlet);
  publish(2, 6);
  EXPECT_EQ(frames(first_.inlet), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(frames(second_.inlet), (std::vector<int>{4, 5}));
  EXPECT_TRUE(first_.inlet.left());
  EXPECT_FALSE(second_.inlet.left());
}

TEST_F(ChangingFanoutTest, OneThatIsReplacedGetsPicturesUntilTheKeyframe) {
  publish(0, 2);
  fanout_.replace(first_.inlet, second_.inlet);
  EXPECT_TRUE(first_.inlet.gets_pictures());
  publish(2, 4);
  EXPECT_TRUE(first_.inlet.gets_pictures());
  publish(4, 5);
  EXPECT_FALSE(first_.inlet.gets_pictures());
  EXPECT_TRUE(second_.inlet.gets_pictures());
  fanout_.remove(second_.inlet);
  EXPECT_FALSE(second_.inlet.gets_pictures());
}

TEST_F(ChangingFanoutTest, OneMayBeReplacedBeforeItHasBegun) {
  publish(0, 2);
  fanout_.replace(first_.inlet, second_.inlet);
  fanout_.replace(second_.inlet, third_.inlet);
  publish(2, 6);
  EXPECT_EQ(frames(first_.inlet), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(frames(second_.inlet), std::vector<int>());
  EXPECT_TRUE(second_.inlet.left());
  EXPECT_EQ(frames(third_.inlet), (std::vector<int>{4, 5}));
}

TEST_F(ChangingFanoutTest, OneThatIsReplacedBeforeItHasBegunLeavesAtOnce) {
  publish(0, 2);
  fanout_.replace(first_.inlet, second_.inlet);
  fanout_.replace(second_.inlet, third_.inlet);
  EXPECT_TRUE(second_.inlet.left());
  EXPECT_FALSE(first_.inlet.left());
}

TEST_F(ChangingFanoutTest, OneMayGoWhileItWaitsForItsTurn) {
  publish(0, 2);
  fanout_.replace(first_.inlet, second_.inlet);
  fanout_.remove(second_.inlet);
  publish(2, 6);
  EXPECT_TRUE(first_.inlet.left());
  EXPECT_TRUE(second_.inlet.left());
  EXPECT_EQ(frames(second_.inlet), std::vector<int>());
  EXPECT_EQ(second_.stats.packets_dropped[index_of(PacketDrop::kStop)], 0u);
}

TEST_F(ChangingFanoutTest, WithTheLastOfALineAllGo) {
  publish(0, 2);
  fanout_.replace(first_.inlet, second_.inlet);
  fanout_.replace(second_.inlet, third_.inlet);
  fanout_.remove(third_.inlet);
  publish(2, 6);
  for (const Other* one : {&first_, &second_, &third_}) EXPECT_TRUE(one->inlet.left());
  EXPECT_EQ(frames(first_.inlet), (std::vector<int>{0, 1}));
}

TEST_F(ChangingFanoutTest, TheEndOfTheEncodeIsTheEndOfAll) {
  publish(0, 2);
  fanout_.replace(first_.inlet, second_.inlet);
  fanout_.finish();
  fanout_.add(third_.inlet);
  MediaPacket packet;
  EXPECT_EQ(frames(first_.inlet), (std::vector<int>{0, 1}));
  for (Other* one : {&first_, &second_, &third_}) {
    EXPECT_EQ(one->inlet.pop(packet, 0ms, {}), PacketQueue::Pop::kEnd);
  }
}

// The supervisor asks for all feeds: it would wait as long as the output's peer does.
TEST_F(ChangingFanoutTest, WhetherItHasFinishedIsSaidWhileAProducerWaits) {
  OutputStats stats("full");
  OutputInlet full(1, stats, true, [](const MediaFormat&) { return true; });
  fanout_.add(full);
  std::jthread producer([this] { publish(0, 2); });
  EXPECT_TRUE(comes_true([this] { return first_.stats.queue_packets == 2; }));
  auto finished = std::async(std::launch::async, [this] { return fanout_.finished(); });
  EXPECT_EQ(finished.wait_for(10s), std::future_status::ready);
  full.end(PacketDrop::kStop);
  producer.join();
  EXPECT_FALSE(finished.get());
}

TEST_F(ChangingFanoutTest, WhetherProducersWaitIsKnownToThoseThatComeLater) {
  fanout_.replace(first_.inlet, second_.inlet);
  fanout_.set_blocks(true);
  fanout_.add(third_.inlet);
  for (const Other* one : {&first_, &second_, &third_}) EXPECT_TRUE(one->inlet.blocks());
}

TEST(PacketFanoutTest, PacketsAreSharedAndLetGoAtTheEnd) {
  const Clip clip = encode_clip({.frames = 5});
  TestOutput null(output_to("null:"));
  {
    PacketFanout fanout({&null.output.inlet()});
    null.start();
    for (const ClipPacket& p : clip.packets) fanout.publish(*p.packet, p.stream, clip.format, {});
    fanout.finish();
    null.join();
    EXPECT_EQ(av_buffer_get_ref_count(clip.packets[0].packet->buf), 1);
  }
}

}  // namespace
}  // namespace framelane
