#include "pipeline/source/stream_source.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/pipeline/base/log_capture.hpp"
#include "tests/pipeline/source/source_fixture.hpp"

namespace framelane {
namespace {

using namespace std::chrono_literals;
using testing::Bytes;
using testing::clip;
using testing::ffmpeg;
using testing::probe;
using testing::Reading;

class StreamSourceTest : public testing::SourceFixture {};

TEST_F(StreamSourceTest, TimestampsComeOutAsTheyAreInTheFile) {
  const Reading reading = read(clip("street_h264.mp4"));
  EXPECT_EQ(reading.packet_dts, probe(clip("street_h264.mp4"), "packet=dts"));
  EXPECT_EQ(reading.frame_pts, probe(clip("street_h264.mp4"), "frame=best_effort_timestamp"));
  EXPECT_EQ(repairs(), 0u);
}

TEST_F(StreamSourceTest, VariableFrameRateKeepsItsTimestamps) {
  const std::string path = folder / "vfr.mkv";
  ffmpeg("-i " + clip("street_h264.mp4") +
         " -vf \"select='not(mod(n,3))+not(mod(n,7))'\" -vsync vfr -c:v libx264 " + path);
  EXPECT_EQ(read(path).frame_pts, probe(path, "frame=best_effort_timestamp"));
  EXPECT_EQ(repairs(), 0u);
}

TEST_F(StreamSourceTest, ATransportStreamStartsAtZero) {
  const std::string path = folder / "clip.ts";
  ffmpeg("-i " + clip("street_h264.mp4") + " -c copy " + path);
  const Reading reading = read(path);
  EXPECT_EQ(reading.frames, 42u);
  EXPECT_EQ(reading.frame_pts.front(), 0);
  EXPECT_EQ(repairs(), 0u);
}

// FFmpeg would take it for MPEG-PS. A playlist's last segment may be as short.
TEST_F(StreamSourceTest, ATransportStreamOfAFewPacketsIsReadToo) {
  for (int frames = 1; frames <= 3; ++frames) {
    const std::string path = folder / ("short" + std::to_string(frames));
    ffmpeg("-f lavfi -i color=gray:size=64x64:rate=25 -frames:v " + std::to_string(frames) +
           " -c:v libx264 -bf 0 -f mpegts " + path);
    ASSERT_LT(testing::read_file(path).size(), 2040u);
    EXPECT_EQ(read(path).frames, static_cast<std::size_t>(frames));
  }
}

TEST_F(StreamSourceTest, CopyOnlyDecodesNothing) {
  decode = false;
  const auto source = open(clip("street_h264.mp4"));
  const Reading reading = read(*source);
  EXPECT_EQ(source->info().decoder, "");
  EXPECT_EQ(reading.frames, 0u);
  EXPECT_EQ(reading.packet_pts, probe(clip("street_h264.mp4"), "packet=pts"));
}

TEST_F(StreamSourceTest, BytesOfPacketsAreCounted) {
  decode = false;
  read(clip("street_h264.mp4"));
  std::int64_t sum = 0;
  for (const std::int64_t size : probe(clip("street_h264.mp4"), "packet=size")) sum += size;
  EXPECT_EQ(stats.input_bytes, static_cast<std::uint64_t>(sum));
}

TEST_F(StreamSourceTest, SoundIsReadOnlyWhenItIsWanted) {
  const std::string path = folder / "sound.mp4";
  ffmpeg("-i " + clip("street_h264.mp4") +
         " -f lavfi -i sine=duration=4 -c:v copy -c:a aac -shortest " + path);
  EXPECT_EQ(read(path).audio_packets, 0u);
  want_audio = true;
  const auto source = open(path);
  EXPECT_GT(read(*source).audio_packets, 100u);
  ASSERT_TRUE(source->info().media->audio.has_value());
  EXPECT_EQ(source->info().media->audio->parameters->codec_id, AV_CODEC_ID_AAC);
}

class LoopTest : public StreamSourceTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(LoopTest, EveryRoundGivesEveryFrameAndTheLineContinues) {
  const std::string path = folder / (std::string("clip.") + GetParam());
  ffmpeg("-i " + clip("street_h264.mp4") + " -c copy -frames:v 20 " + path);
  const std::size_t round = read(path).frames;
  ASSERT_GE(round, 19u);

  FeedStats loop_stats("loop", {}, {}, 1);
  LineClock loop_clock;
  Timeline loop_timeline(loop_stats, loop_clock);
  input.loop = true;
  const SourceContext loop_context{
      .pool = pool, .stats = loop_stats, .timeline = loop_timeline, .interrupt = interrupt};
  const auto source = open_source(input, loop_context);
  const MediaFormatRef media = source->info().media;
  const Reading reading = read(*source, round * 3);
  EXPECT_EQ(reading.pixels.size() % 3, 0u);
  const auto third = static_cast<std::ptrdiff_t>(reading.pixels.size() / 3);
  const auto begin = reading.pixels.begin();
  EXPECT_TRUE(std::equal(begin, begin + third, begin + third));
  EXPECT_TRUE(std::equal(begin, begin + third, begin + 2 * third));
  EXPECT_TRUE(testing::strictly_increasing(reading.frame_pts));
  EXPECT_TRUE(testing::strictly_increasing(reading.packet_dts));
  EXPECT_EQ(source->info().media, media);
}

INSTANTIATE_TEST_SUITE_P(Containers, LoopTest, ::testing::Values("mp4", "mkv", "ts", "h264"));

TEST_F(StreamSourceTest, ALoopIsNoRepairAndKeepsTheFrameDistance) {
  input.loop = true;
  const auto source = open(clip("street_h264.mp4"));
  const Reading reading = read(*source, 100, false);
  for (std::size_t i = 1; i < reading.frame_pts.size(); ++i) {
    ASSERT_EQ(reading.frame_pts[i] - reading.frame_pts[i - 1], 1024) << i;
  }
  EXPECT_EQ(repairs(), 0u);
}

TEST_F(StreamSourceTest, DurationStopsInTheMiddleAndDrainsTheDecoder) {
  input.duration = 2s;
  const Reading reading = read(clip("street_h264.mp4"));
  EXPECT_EQ(reading.end, ReadResult::kEnd);
  EXPECT_EQ(reading.frames, 20u);
}

TEST_F(StreamSourceTest, DurationEndsALoop) {
  input.duration = 10s;
  input.loop = true;
  EXPECT_EQ(read(*open(clip("street_h264.mp4")), 1000, false).frames, 100u);
}

TEST_F(StreamSourceTest, ALiveSourceThatEndsIsAFaultOnceAllFramesAreOut) {
  input.pace = InputOptions::Pace::kRealtime;
  const auto source = open(clip("street_h264.mp4"));
  EXPECT_EQ(read(*source, 42, false).frames, 42u);
  SourceItem item;
  try {
    source->read(item);
    FAIL() << "nothing was thrown";
  } catch (const IoError& error) {
    EXPECT_EQ(error.code(), IoFault::kEof);
  }
}

TEST_F(StreamSourceTest, AnOptionThatNothingTakesFailsTheFeedByName) {
  input.options = {{"rtsp_transport", "tcp", false}};
  EXPECT_EQ(failure_of<FeedError>(clip("street_h264.mp4")), FeedFault::kConfiguration);
  EXPECT_NE(message.find("input.options.rtsp_transport"), std::string::npos) << message;
}

TEST_F(StreamSourceTest, AnInheritedOptionMayGoUnused) {
  input.options = {{"rtsp_transport", "tcp", true}};
  EXPECT_EQ(read(clip("street_h264.mp4")).frames, 42u);
}

TEST_F(StreamSourceTest, AnUnknownDemuxerIsAConfigurationError) {
  input.format = "no_such_format";
  EXPECT_EQ(failure_of<FeedError>(clip("street_h264.mp4")), FeedFault::kConfiguration);
}

TEST_F(StreamSourceTest, AMissingFileIsAnIoError) {
  EXPECT_EQ(failure_of<IoError>(folder / "missing.mp4"), IoFault::kIo);
  EXPECT_NE(message.find("No such file"), std::string::npos) << message;
}

TEST_F(StreamSourceTest, TextAndEmptyFilesAreNotVideo) {
  const std::string text = "This is a letter and not a film.\n";
  for (const char* name : {"letter.mp4", "letter.txt", "letter"}) {
    testing::write_file(folder / name, Bytes(text.begin(), text.end()));
    EXPECT_EQ(failure_of<IoError>(folder / name), IoFault::kDecode) << name;
    EXPECT_NE(message.find("is not a video framelane can read"), std::string::npos) << message;
  }
  testing::write_file(folder / "empty.mp4", {});
  EXPECT_EQ(failure_of<IoError>(folder / "empty.mp4"), IoFault::kDecode) << message;
}

TEST_F(StreamSourceTest, AFileWithoutVideoIsAConfigurationError) {
  ffmpeg("-f lavfi -i sine=duration=1 " + (folder / "sound.wav"));
  EXPECT_EQ(failure_of<FeedError>(folder / "sound.wav"), FeedFault::kConfiguration);
  EXPECT_NE(message.find("has no video stream"), std::string::npos) << message;
}

TEST_F(StreamSourceTest, AWrongFilterGraphIsAConfigurationError) {
  EXPECT_EQ(failure_of<FeedError>("lavfi:no_such_filter"), FeedFault::kConfiguration);
  EXPECT_EQ(failure_of<FeedError>("lavfi:testsrc2=size=nonsense"), FeedFault::kConfiguration);
}

TEST_F(StreamSourceTest, AStopWhileAFilterGraphOpensIsNoFaultOfTheGraph) {
  stop.request_stop();
  EXPECT_EQ(failure_of<IoError>("lavfi:testsrc2"), IoFault::kIo);
}

TEST_F(StreamSourceTest, ChromaWhereNoConversionLooksForItIsTold) {
  const std::string path = folder / "siting.mp4";
  ffmpeg("-i " + clip("street_h264.mp4") +
         " -frames:v 5 -c copy -bsf:v h264_metadata=chroma_sample_loc_type=4 " + path);
  const testing::LogCapture log;
  read(path);
  EXPECT_EQ(log.count("bottomleft"), 1u);
  input.color.siting = Siting::kTopLeft;
  read(path);
  EXPECT_EQ(log.count("bottomleft"), 1u);
}

TEST_F(StreamSourceTest, ARefusedPortIsRefused) {
  EXPECT_EQ(failure_of<IoError>("rtsp://127.0.0.1:1/stream"), IoFault::kRefused) << message;
}

TEST_F(StreamSourceTest, ALiveSourceWhoseVideoDiesIsLostThoughItsSoundGoesOn) {
  input.pace = InputOptions::Pace::kRealtime;
  input.timeout = 300ms;
  want_audio = true;
  EXPECT_EQ(failure_of<IoError>("lavfi:testsrc2=size=64x48:duration=0.2[out0];"
                                "sine=duration=5,arealtime[out1]"),
            IoFault::kTimeout);
  EXPECT_NE(message.find("no video"), std::string::npos) << message;
}

TEST_F(StreamSourceTest, AStreamThroughAFifoIsReadToItsEnd) {
  ffmpeg("-i " + clip("street_h264.mp4") + " -c copy " + (folder / "clip.ts"));
  const std::string path = folder / "fifo";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  std::jthread writer([&] {
    const Bytes bytes = testing::read_file(folder / "clip.ts");
    const int fd = ::open(path.c_str(), O_WRONLY);
    EXPECT_EQ(::write(fd, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    ::close(fd);
  });
  EXPECT_EQ(read(path).frames, 42u);
}

TEST_F(StreamSourceTest, ANextWriterOfAFifoMayComeBeforeTheNextSource) {
  ffmpeg("-i " + clip("street_h264.mp4") + " -c copy -frames:v 2 " + (folder / "clip.ts"));
  const Bytes bytes = testing::read_file(folder / "clip.ts");
  input.url = folder / "fifo";
  ASSERT_EQ(::mkfifo(input.url.c_str(), 0600), 0);
  const auto write_clip = [&] {
    const int fd = ::open(input.url.c_str(), O_WRONLY);
    EXPECT_EQ(::write(fd, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    ::close(fd);
  };
  PersistentPipe pipe;
  SourceContext with_pipe = context();
  with_pipe.pipe = &pipe;
  {
    std::jthread writer(write_clip);
    EXPECT_EQ(read(*open_source(input, with_pipe)).frames, 2u);
  }
  ASSERT_TRUE(pipe.reader);
  // If nobody had the FIFO open for reading, this open would fail.
  const int next = ::open(input.url.c_str(), O_WRONLY | O_NONBLOCK);
  ASSERT_GE(next, 0);
  ASSERT_GT(::write(next, bytes.data(), 4096), 0);
  std::jthread writer([&] {
    ::fcntl(next, F_SETFL, 0);
    std::size_t done = 4096;
    while (done < bytes.size()) {
      const ssize_t count = ::write(next, bytes.data() + done, bytes.size() - done);
      if (count <= 0) break;
      done += static_cast<std::size_t>(count);
    }
    ::close(next);
  });
  const Reading second = read(*open_source(input, with_pipe));
  EXPECT_EQ(second.frames, 2u);
  EXPECT_EQ(repairs(), 0u);
}

TEST_F(StreamSourceTest, TimestampsThatJumpFarAreBroughtBackToTheLine) {
  // As from a DVR whose clock is set: first by 1,500 years, then by two hours. A shorter step
  // forward in a file is a gap.
  const std::string path = folder / "jump.nut";
  ffmpeg("-i " + clip("street_h264.mp4") +
         " -c copy -bsf:v "
         "\"setts=ts=TS+if(gte(N\\,15)\\,4e15\\,0)+if(gte(N\\,30)\\,589824000\\,0)\" " +
         path);
  const auto source = open(path);
  const Reading reading = read(*source);
  EXPECT_EQ(reading.frames, 42u);
  EXPECT_TRUE(testing::strictly_increasing(reading.packet_dts));
  EXPECT_TRUE(testing::strictly_increasing(reading.frame_pts));
  const double last = static_cast<double>(reading.frame_pts.back());
  EXPECT_NEAR(last * av_q2d(source->info().time_base), 4.1, 0.5);
  EXPECT_EQ(stats.timestamp_repairs[index_of(TimestampRepair::kJump)], 2u);
}

TEST_F(StreamSourceTest, AFifoThatNobodyWritesToTimesOut) {
  const std::string path = folder / "fifo";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  input.timeout = 50ms;
  EXPECT_EQ(failure_of<IoError>(path), IoFault::kTimeout) << message;
}

TEST_F(StreamSourceTest, AStopEndsReading) {
  input.loop = true;
  const auto source = open(clip("street_mjpeg.avi"));
  read(*source, 1);
  stop.request_stop();
  SourceItem item;
  EXPECT_EQ(source->read(item), ReadResult::kStopped);
}

TEST_F(StreamSourceTest, SecretsAreNotInMessages) {
  EXPECT_TRUE(failure_of<IoError>("rtsp://viewer:hunter22@127.0.0.1:1/stream"));
  EXPECT_EQ(message.find("hunter22"), std::string::npos) << message;
}

}  // namespace
}  // namespace framelane
