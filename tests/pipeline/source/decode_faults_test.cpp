// Which packets count as decode faults: those that are damaged, cut off or cannot be decoded, and
// no others.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/pipeline/source/source_fixture.hpp"

namespace framelane {
namespace {

using testing::Bytes;
using testing::clip;
using testing::ffmpeg;
using testing::probe;
using testing::Reading;

class DecodeFaultsTest : public testing::SourceFixture {
 protected:
};

TEST_F(DecodeFaultsTest, DamagedDataIsCountedAndTheRestDecoded) {
  Bytes bytes = testing::read_file(clip("street_h264.mp4"));
  for (std::size_t i = bytes.size() / 3; i < bytes.size() / 3 * 2; i += 97) bytes[i] ^= 0x5a;
  testing::write_file(folder / "damaged.mp4", bytes);
  const Reading reading = read(folder / "damaged.mp4");
  EXPECT_EQ(reading.end, ReadResult::kEnd);
  EXPECT_GT(reading.frames, 0u);
  EXPECT_GT(faults(DecodeFault::kCorrupt), 0u);
}

TEST_F(DecodeFaultsTest, ATruncatedPacketIsCounted) {
  Bytes bytes = testing::read_file(clip("street_mjpeg.avi"));
  bytes.resize(bytes.size() / 2);
  testing::write_file(folder / "cut.avi", bytes);
  const Reading reading = read(folder / "cut.avi");
  EXPECT_EQ(reading.end, ReadResult::kEnd);
  EXPECT_EQ(faults(DecodeFault::kTruncated), 1u);
}

struct Intact {
  const char* file;
  const char* arguments;
};

// Undamaged streams. In some of them not every packet becomes a frame.
class CleanStreamTest : public DecodeFaultsTest, public ::testing::WithParamInterface<Intact> {};

TEST_P(CleanStreamTest, NoPacketCounts) {
  const std::string path =
      generate(GetParam().file, std::string("-vf scale=128:96,fps=50 ") + GetParam().arguments);
  for (const char* threads : {"1", "4"}) {
    input.options = {{"threads", threads, true}};
    EXPECT_EQ(read(path).frames, probe(path, "frame=pkt_size").size());
    for (const auto& count : stats.decode_faults) EXPECT_EQ(count, 0u) << threads;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Codings, CleanStreamTest,
    ::testing::Values(Intact{"h264.mp4", "-c:v libx264 -bf 8 -b_strategy 0"},
                      Intact{"pyramid.ts", "-c:v libx264 -bf 8 -refs 8 -x264-params b-pyramid=2"},
                      Intact{"opengop.ts", "-c:v libx264 -g 10 -x264-params open-gop=1"},
                      Intact{"interlaced.ts", "-c:v libx264 -flags +ildct+ilme"},
                      Intact{"hevc.mkv", "-c:v libx265 -x265-params log-level=none:bframes=8"},
                      Intact{"mjpeg.avi", "-c:v mjpeg"},
                      Intact{"mpeg2.ts", "-c:v mpeg2video -bf 2 -flags +ildct+ilme"},
                      Intact{"mpeg4.avi", "-c:v mpeg4 -bf 2"},
                      Intact{"vp8.webm", "-c:v libvpx -auto-alt-ref 1 -lag-in-frames 16 -b:v 1M"},
                      Intact{"vp9.webm",
                             "-c:v libvpx-vp9 -auto-alt-ref 6 -lag-in-frames 25 -cpu-used 8"}));

TEST_F(DecodeFaultsTest, FramesThatAnEditListCutsOffDoNotCount) {
  const std::string whole = generate("whole.mp4", "-c:v libx264 -g 20 -bf 2");
  ffmpeg("-ss 0.7 -i " + whole + " -c copy " + (folder / "cut.mp4"));
  const Reading reading = read(folder / "cut.mp4");
  EXPECT_LT(reading.frames, reading.packet_dts.size());
  EXPECT_EQ(faults(DecodeFault::kCorrupt), 0u);
}

TEST_F(DecodeFaultsTest, EveryPacketBeforeTheFirstFrameCounts) {
  const std::string whole =
      generate("whole.ts", "-vf scale=128:96,fps=50 -c:v libx264 -g 20 -bf 2 -sc_threshold 0");
  const std::vector<std::int64_t> positions = probe(whole, "packet=pos");
  ASSERT_EQ(positions.size(), 50u);
  const Bytes bytes = testing::read_file(whole);
  // The stream's tables, and then packets from the middle of a group of 20.
  Bytes joined(bytes.begin(), bytes.begin() + positions.front());
  joined.insert(joined.end(), bytes.begin() + positions[25], bytes.end());
  testing::write_file(folder / "joined.ts", joined);
  const Reading reading = read(folder / "joined.ts");
  EXPECT_GT(reading.frames, 0u);
  EXPECT_LT(reading.frames, reading.packet_dts.size());
  EXPECT_EQ(faults(DecodeFault::kCorrupt), reading.packet_dts.size() - reading.frames);
}

}  // namespace
}  // namespace framelane
