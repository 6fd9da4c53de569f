// Longer than 400 lines: files and FIFOs are read by one class, and the tests share one fixture.
#include "pipeline/source/raw_source.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "tests/pipeline/source/source_fixture.hpp"

namespace framelane {
namespace {

using namespace std::chrono_literals;
using testing::Bytes;
using testing::ffmpeg;
using testing::Reading;

class RawSourceTest : public testing::SourceFixture {
 protected:
  RawSourceTest() { describe("bgra", 64, 48); }

  void describe(const std::string& format, int width, int height) {
    input.format = "rawvideo";
    input.raw = RawVideoOptions{
        .pixel_format = format, .width = width, .height = height, .rate = {30000, 1001}};
  }
  // Ten frames of the described format, as the ffmpeg command writes them.
  Bytes frames() const {
    const RawVideoOptions& raw = *input.raw;
    return ffmpeg("-f lavfi -i testsrc2=rate=10:duration=1 -vf scale=" + std::to_string(raw.width) +
                  ":" + std::to_string(raw.height) + " -pix_fmt " + raw.pixel_format +
                  " -f rawvideo -");
  }
  std::string file(const Bytes& bytes) {
    testing::write_file(folder / "frames.raw", bytes);
    return folder / "frames.raw";
  }
  std::string fifo() {
    const std::string path = folder / "fifo";
    EXPECT_EQ(::mkfifo(path.c_str(), 0600), 0);
    return path;
  }
  static Bytes part(const Bytes& bytes, std::size_t from, std::size_t to) {
    return {bytes.begin() + static_cast<std::ptrdiff_t>(from),
            bytes.begin() + static_cast<std::ptrdiff_t>(to)};
  }
  // Reads so many frames, and then expects the timeout.
  Reading read_to_timeout(Source& source, std::size_t frames) {
    Reading reading = read(source, frames);
    SourceItem item;
    try {
      source.read(item);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const IoError& error) {
      EXPECT_EQ(error.code(), IoFault::kTimeout);
    }
    return reading;
  }
  static void write_to(const std::string& path, const Bytes& bytes) {
    const int fd = ::open(path.c_str(), O_WRONLY);
    std::size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t count = ::write(fd, bytes.data() + done, bytes.size() - done);
      ASSERT_GT(count, 0);
      done += static_cast<std::size_t>(count);
    }
    ::close(fd);
  }
};

class RawFormatTest : public RawSourceTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(RawFormatTest, EveryFrameComesOutByteForByte) {
  describe(GetParam(), 35, 27);
  const Bytes bytes = frames();
  const Reading reading = read(file(bytes));
  EXPECT_EQ(reading.frames, 10u);
  EXPECT_TRUE(reading.pixels == bytes);
  EXPECT_EQ(reading.pooled_frames, 10u);
}

INSTANTIATE_TEST_SUITE_P(Formats, RawFormatTest,
                         ::testing::Values("bgra", "0rgb", "rgb24", "yuv420p", "yuvj420p", "nv12",
                                           "yuv422p", "yuv444p", "gray"));

TEST_F(RawSourceTest, PixelsAreNotCopiedOnTheHost) {
  read(file(frames()));
  for (const auto& count : stats.host_copies) EXPECT_EQ(count, 0u);
}

TEST_F(RawSourceTest, BytesAreCounted) {
  const Bytes bytes = frames();
  read(file(bytes));
  EXPECT_EQ(stats.input_bytes, bytes.size());
}

TEST_F(RawSourceTest, FramesAreCountedInTicksOfTheRate) {
  const auto source = open(file(frames()));
  EXPECT_EQ(av_cmp_q(source->info().time_base, {1001, 30000}), 0);
  EXPECT_EQ(read(*source).frame_pts, (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST_F(RawSourceTest, ArrivalTimesIncreaseStrictly) {
  input.raw->timestamps = RawVideoOptions::Timestamps::kArrival;
  const Reading reading = read(file(frames()));
  EXPECT_EQ(reading.frame_pts.front(), 0);
  EXPECT_TRUE(testing::strictly_increasing(reading.frame_pts));
  EXPECT_EQ(repairs(), 0u);
}

TEST_F(RawSourceTest, APartialLastFrameIsTruncated) {
  Bytes bytes = frames();
  bytes.pop_back();
  EXPECT_EQ(read(file(bytes)).frames, 9u);
  EXPECT_EQ(faults(DecodeFault::kTruncated), 1u);
}

TEST_F(RawSourceTest, RowsWithAPitchAreReadWithTheirPadding) {
  const Bytes packed = frames();
  const std::size_t row = 64 * 4;
  Bytes padded;
  for (std::size_t at = 0; at < packed.size(); at += row) {
    padded.insert(padded.end(), packed.begin() + static_cast<std::ptrdiff_t>(at),
                  packed.begin() + static_cast<std::ptrdiff_t>(at + row));
    padded.insert(padded.end(), 32, 0xee);
  }
  input.raw->pitch = static_cast<int>(row) + 32;
  EXPECT_TRUE(read(file(padded)).pixels == packed);
}

TEST_F(RawSourceTest, AnInterleavedChromaPlaneHasThePitchOfLuma) {
  describe("nv12", 64, 48);
  input.raw->pitch = 96;
  const Reading reading = read(file(Bytes(96 * 72, 7)));
  EXPECT_EQ(reading.frames, 1u);
  EXPECT_EQ(reading.last_frame.image.planes[1].pitch, 96);
}

TEST_F(RawSourceTest, APlanarChromaPlaneHasHalfThePitchOfLuma) {
  describe("yuv420p", 64, 48);
  input.raw->pitch = 96;
  const Reading reading = read(file(Bytes(96 * 72, 7)));
  EXPECT_EQ(reading.frames, 1u);
  EXPECT_EQ(reading.last_frame.image.planes[2].pitch, 48);
}

TEST_F(RawSourceTest, AFormatThatIsNoneOfOursGoesThroughSwscale) {
  describe("yuv420p10le", 64, 48);
  const Reading reading = read(file(frames()));
  EXPECT_EQ(reading.last_frame.image.format, PixelFormat::kI420);
  EXPECT_EQ(copies(HostCopy::kFormat), 10u);
}

TEST_F(RawSourceTest, UntaggedRgbIsFullRange) {
  const Reading reading = read(file(frames()));
  EXPECT_EQ(reading.last_frame.color.matrix, Matrix::kRgb);
  EXPECT_EQ(reading.last_frame.color.range, Range::kFull);
}

TEST_F(RawSourceTest, ALoopContinuesTheLineWithoutRepairs) {
  input.loop = true;
  const auto source = open(file(frames()));
  const Reading reading = read(*source, 25);
  for (std::size_t i = 0; i < 25; ++i) EXPECT_EQ(reading.frame_pts[i], static_cast<int>(i));
  EXPECT_EQ(repairs(), 0u);
}

// Files of frames that are large enough to be read ahead.
class LargeRawFileTest : public RawSourceTest {
 protected:
  LargeRawFileTest() { describe("bgra", 640, 360); }
  static constexpr std::size_t kFrame = std::size_t{640} * 360 * 4;
};

TEST_F(LargeRawFileTest, ItsFramesComeOutByteForByteAndAreCounted) {
  const Bytes bytes = frames();
  const Reading reading = read(file(bytes));
  EXPECT_EQ(reading.end, ReadResult::kEnd);
  EXPECT_TRUE(reading.pixels == bytes);
  EXPECT_EQ(reading.pooled_frames, 10u);
  EXPECT_EQ(stats.input_bytes, bytes.size());
  for (const auto& count : stats.host_copies) EXPECT_EQ(count, 0u);
}

TEST_F(LargeRawFileTest, APartialLastFrameIsTruncatedOnceInEachLoop) {
  input.loop = true;
  Bytes bytes = frames();
  bytes.pop_back();
  const auto source = open(file(bytes));
  EXPECT_EQ(read(*source, 9).frames, 9u);
  EXPECT_EQ(faults(DecodeFault::kTruncated), 0u);
  const Reading second = read(*source, 9);
  EXPECT_TRUE(second.pixels == part(bytes, 0, 9 * kFrame));
  EXPECT_EQ(second.frame_pts.back(), 17);
  EXPECT_EQ(faults(DecodeFault::kTruncated), 1u);
  EXPECT_EQ(stats.input_bytes, bytes.size() + 9 * kFrame);
  EXPECT_EQ(repairs(), 0u);
}

TEST_F(LargeRawFileTest, DurationStopsReading) {
  input.duration = 100ms;
  EXPECT_EQ(read(file(frames())).frames, 3u);
}

TEST_F(LargeRawFileTest, AStopEndsIt) {
  input.loop = true;
  const auto source = open(file(frames()));
  read(*source, 3, false);
  std::jthread stopper([&] { stop.request_stop(); });
  EXPECT_EQ(read(*source, SIZE_MAX, false).end, ReadResult::kStopped);
}

// A writer appends to the file while it is read: its end is where it is when it is reached.
TEST_F(LargeRawFileTest, AFileThatGrowsMeanwhileIsReadToItsEnd) {
  const Bytes bytes = frames();
  const auto source = open(file(part(bytes, 0, 2 * kFrame)));
  read(*source, 1);
  testing::write_file(folder / "frames.raw", bytes);
  EXPECT_TRUE(read(*source).pixels == part(bytes, kFrame, bytes.size()));
}

TEST_F(LargeRawFileTest, AFileWithoutAWholeFrameCannotBeLooped) {
  input.loop = true;
  EXPECT_EQ(failure_of<IoError>(file(Bytes(kFrame - 1))), IoFault::kEof);
}

TEST_F(RawSourceTest, AFileWithoutAWholeFrameCannotBeLooped) {
  input.loop = true;
  EXPECT_EQ(failure_of<IoError>(file(Bytes(100))), IoFault::kEof);
}

TEST_F(RawSourceTest, DurationStopsReading) {
  input.duration = 100ms;  // 30000/1001 frames a second: 0, 33, 66 and 99 ms
  EXPECT_EQ(read(file(frames())).frames, 3u);
}

TEST_F(RawSourceTest, AFifoIsOpenedBeforeItsWriterComes) {
  const std::string path = fifo();
  const Bytes bytes = frames();
  const auto source = open(path);
  std::jthread writer([&] { write_to(path, bytes); });
  const Reading reading = read(*source);
  EXPECT_EQ(reading.end, ReadResult::kEnd);
  EXPECT_TRUE(reading.pixels == bytes);
}

TEST_F(RawSourceTest, AReopenedFifoContinuesTheLine) {
  const std::string path = fifo();
  const Bytes bytes = frames();
  std::vector<std::int64_t> pts;
  for (int round = 0; round < 2; ++round) {
    const auto source = open(path);
    std::jthread writer([&] { write_to(path, bytes); });
    const Reading reading = read(*source);
    pts.insert(pts.end(), reading.frame_pts.begin(), reading.frame_pts.end());
  }
  EXPECT_EQ(pts.back(), 19);
  EXPECT_TRUE(testing::strictly_increasing(pts));
}

TEST_F(RawSourceTest, AFifoThatNobodyWritesToTimesOut) {
  input.timeout = 20ms;
  EXPECT_EQ(failure_of<IoError>(fifo()), IoFault::kTimeout);
}

// A FIFO stays open from one source to the next, so that no writer is ended by SIGPIPE.
class PersistentPipeTest : public RawSourceTest {
 protected:
  PersistentPipeTest() {
    describe("bgra", 16, 16);
    input.timeout = 20ms;
    input.url = fifo();
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i * 7 / 5);
  }
  ~PersistentPipeTest() override { close_writer(); }
  std::unique_ptr<Source> open_reader() {
    SourceContext with_pipe = context();
    with_pipe.pipe = &pipe;
    return open_source(input, with_pipe);
  }
  std::unique_ptr<Source> open_again() {
    auto source = open_reader();
    if (writer < 0) open_writer();
    return source;
  }
  void write(std::size_t from, std::size_t to) {
    ASSERT_EQ(::write(writer, bytes.data() + from, to - from), static_cast<ssize_t>(to - from));
  }
  void open_writer() {
    writer = ::open(input.url.c_str(), O_WRONLY | O_NONBLOCK);
    ASSERT_GE(writer, 0);
  }
  void close_writer() {
    if (writer >= 0) ::close(writer);
    writer = -1;
  }

  static constexpr std::size_t kFrame = 16 * 16 * 4;
  Bytes bytes = Bytes(6 * kFrame);
  PersistentPipe pipe;
  int writer = -1;
};

TEST_F(PersistentPipeTest, AStallInAFrameCostsThatFrameAndNoOther) {
  auto source = open_again();
  write(0, kFrame + 100);
  EXPECT_TRUE(read_to_timeout(*source, 1).pixels == part(bytes, 0, kFrame));
  source.reset();
  write(kFrame + 100, 4 * kFrame);
  source = open_again();
  EXPECT_TRUE(read(*source, 2).pixels == part(bytes, 2 * kFrame, 4 * kFrame));
  EXPECT_EQ(faults(DecodeFault::kTruncated), 1u);
}

TEST_F(PersistentPipeTest, AStallInWhatIsSkippedIsNoOtherFault) {
  auto source = open_again();
  write(0, 100);
  read_to_timeout(*source, 0);
  write(100, 200);
  source = open_again();
  read_to_timeout(*source, 0);
  write(200, 2 * kFrame);
  source = open_again();
  EXPECT_TRUE(read(*source, 1).pixels == part(bytes, kFrame, 2 * kFrame));
  EXPECT_EQ(faults(DecodeFault::kTruncated), 1u);
}

TEST_F(PersistentPipeTest, TheNextWriterStartsWithAWholeFrame) {
  auto source = open_again();
  write(0, 100);
  read_to_timeout(*source, 0);
  source = open_again();
  close_writer();
  EXPECT_EQ(read(*source).end, ReadResult::kEnd);
  source = open_again();
  write(0, kFrame);
  EXPECT_TRUE(read(*source, 1).pixels == part(bytes, 0, kFrame));
  EXPECT_EQ(faults(DecodeFault::kTruncated), 1u);
}

// The writer that stalled may still have the FIFO open, or be gone without having been missed.
TEST_F(PersistentPipeTest, AnotherWriterThatTakesOverAfterAStallLosesNothing) {
  for (const bool stays : {true, false}) {
    auto source = open_again();
    write(0, kFrame + 100);
    read_to_timeout(*source, 1);
    source.reset();
    const int stalled = std::exchange(writer, -1);
    open_writer();
    if (!stays) ::close(stalled);
    write(2 * kFrame, 5 * kFrame);
    source = open_again();
    EXPECT_TRUE(read(*source, 3).pixels == part(bytes, 2 * kFrame, 5 * kFrame)) << stays;
    if (stays) ::close(stalled);
  }
  EXPECT_EQ(faults(DecodeFault::kTruncated), 2u);
}

TEST_F(PersistentPipeTest, AStallBetweenFramesLosesNothing) {
  auto source = open_again();
  write(0, kFrame);
  read_to_timeout(*source, 1);
  source.reset();
  write(kFrame, 2 * kFrame);
  source = open_again();
  EXPECT_TRUE(read(*source, 1).pixels == part(bytes, kFrame, 2 * kFrame));
  EXPECT_EQ(faults(DecodeFault::kTruncated), 0u);
}

TEST_F(PersistentPipeTest, AWriterMayComeAndWriteBetweenTwoSources) {
  auto source = open_again();
  write(0, 2 * kFrame + 100);
  close_writer();
  const Reading first = read(*source);
  EXPECT_EQ(first.end, ReadResult::kEnd);
  EXPECT_EQ(first.frames, 2u);
  EXPECT_EQ(faults(DecodeFault::kTruncated), 1u);
  source.reset();
  open_writer();
  write(0, 3 * kFrame);
  close_writer();
  source = open_reader();
  const Reading second = read(*source);
  EXPECT_EQ(second.end, ReadResult::kEnd);
  EXPECT_TRUE(second.pixels == part(bytes, 0, 3 * kFrame));
  EXPECT_EQ(second.frame_pts, (std::vector<std::int64_t>{2, 3, 4}));
  EXPECT_EQ(faults(DecodeFault::kTruncated), 1u);
  EXPECT_EQ(repairs(), 0u);
}

TEST_F(PersistentPipeTest, AnotherFifoOfTheSameNameIsOpenedAnew) {
  auto source = open_again();
  write(0, kFrame + 100);
  read_to_timeout(*source, 1);
  source.reset();
  close_writer();
  ASSERT_EQ(::unlink(input.url.c_str()), 0);
  ASSERT_EQ(::mkfifo(input.url.c_str(), 0600), 0);
  source = open_again();
  write(0, kFrame);
  EXPECT_TRUE(read(*source, 1).pixels == part(bytes, 0, kFrame));
}

TEST_F(RawSourceTest, AStopEndsTheWaitForAWriter) {
  input.timeout = 1h;
  const auto source = open(fifo());
  std::jthread stopper([&] { stop.request_stop(); });
  EXPECT_EQ(read(*source).end, ReadResult::kStopped);
}

TEST_F(RawSourceTest, WrongDescriptionsAreConfigurationErrors) {
  const std::string path = file(frames());
  input.raw->pixel_format = "no_such_format";
  EXPECT_EQ(failure_of<FeedError>(path), FeedFault::kConfiguration);
  for (const char* unfit : {"pal8", "monow", "vaapi"}) {
    describe(unfit, 64, 48);
    EXPECT_EQ(failure_of<FeedError>(path), FeedFault::kConfiguration) << unfit;
  }
  describe("bgra", 0, 48);
  EXPECT_EQ(failure_of<FeedError>(path), FeedFault::kConfiguration);
  describe("bgra", 64, 48);
  input.raw->pitch = 255;
  EXPECT_EQ(failure_of<FeedError>(path), FeedFault::kConfiguration);
  input.raw->pitch = 0;
  input.options = {{"threads", "4", false}};
  EXPECT_EQ(failure_of<FeedError>(path), FeedFault::kConfiguration);
}

TEST_F(RawSourceTest, TheLargestFramesAreThoseThatEncodersTake) {
  const std::string path = file({});
  describe("gray", 16255, 16255);
  EXPECT_NO_THROW(open(path));
  describe("gray", 16384, 16384);
  try {
    open(path);
    FAIL() << "was accepted";
  } catch (const FeedError& error) {
    EXPECT_NE(std::string(error.what()).find("more than FFmpeg's encoders take (16255x16255"),
              std::string::npos)
        << error.what();
  }
}

TEST_F(RawSourceTest, ANetworkUrlIsAConfigurationError) {
  EXPECT_EQ(failure_of<FeedError>("tcp://127.0.0.1:9000"), FeedFault::kConfiguration);
}

}  // namespace
}  // namespace framelane
