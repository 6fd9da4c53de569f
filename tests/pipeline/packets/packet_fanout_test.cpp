#include "pipeline/packets/packet_fanout.hpp"

#include <gtest/gtest.h>

#include <thread>

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
