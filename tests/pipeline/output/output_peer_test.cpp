#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdarg>
#include <fstream>

#include "pipeline/av/av_log_capture.hpp"
#include "pipeline/packets/packet_fanout.hpp"
#include "tests/pipeline/output/output_fixture.hpp"

namespace framelane {
namespace {

using namespace testing;  // of framelane
using ::testing::HasSubstr;

/// A TCP port of this machine, closed until listen().
class Port {
 public:
  Port() {
    fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address_;
    if (bind(fd_, reinterpret_cast<sockaddr*>(&address_), length) != 0 ||
        getsockname(fd_, reinterpret_cast<sockaddr*>(&address_), &length) != 0) {
      throw std::runtime_error("no port");
    }
  }
  ~Port() { close(fd_); }
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;
  void listen() {
    const timeval patience{10, 0};
    ASSERT_EQ(setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
    ASSERT_EQ(::listen(fd_, 4), 0);
  }
  int accept() { return ::accept(fd_, nullptr, nullptr); }
  /// Accepts a connection and writes all that comes through it into a file.
  void receive(const std::string& path) {
    const int fd = accept();
    ASSERT_GE(fd, 0);
    Bytes bytes;
    std::uint8_t chunk[65536];
    for (ssize_t count; (count = recv(fd, chunk, sizeof chunk, 0)) > 0;) {
      bytes.insert(bytes.end(), chunk, chunk + count);
    }
    close(fd);
    write_file(path, bytes);
  }
  std::string url() const { return "tcp://127.0.0.1:" + std::to_string(ntohs(address_.sin_port)); }

 private:
  int fd_;
  sockaddr_in address_{};
};

OutputOptions peer(const Port& port) {
  OutputOptions options = output_to(port.url());
  options.format = "mpegts";
  options.timeout = 200ms;
  options.queue = 64;
  return options;
}

OutputOptions fifo(const TempFolder& folder) {
  OutputOptions options = output_to(folder / "fifo");
  EXPECT_EQ(mkfifo(options.url.c_str(), 0600), 0);
  options.format = "mpegts";
  options.timeout = 200ms;
  options.queue = 64;
  return options;
}

void copy_file(const std::string& from, const std::string& to) {
  std::ofstream(to, std::ios::binary) << std::ifstream(from, std::ios::binary).rdbuf();
}

/// Counts what FFmpeg logs as errors and nobody captures, as the process's log would show it.
class FfmpegErrors {
 public:
  FfmpegErrors() {
    logged_ = 0;
    av_log_set_callback([](void*, int level, const char* format, va_list) {
      if (level <= AV_LOG_ERROR && !AvLogCapture::take(take_text(format))) ++logged_;
    });
  }
  ~FfmpegErrors() { av_log_set_callback(av_log_default_callback); }
  FfmpegErrors(const FfmpegErrors&) = delete;
  FfmpegErrors& operator=(const FfmpegErrors&) = delete;
  int logged() const { return logged_; }

 private:
  static std::string_view take_text(std::string_view format) {
    return format.substr(0, format.find_last_not_of('\n') + 1);
  }
  static inline std::atomic<int> logged_{0};
};

OutputOptions full_device() {
  OutputOptions options = output_to("/dev/full");
  options.format = "mpegts";
  return options;
}

/// A file system of our own that fills up.
class TinyDisk {
 public:
  TinyDisk() { mounted_ = mount("tmpfs", (folder_ / "").c_str(), "tmpfs", 0, "size=256k") == 0; }
  ~TinyDisk() {
    if (mounted_) umount2((folder_ / "").c_str(), MNT_DETACH);
  }
  bool mounted() const { return mounted_; }
  std::string operator/(const std::string& name) const { return folder_ / name; }
  void fill() {
    struct statvfs disk;
    ASSERT_EQ(statvfs((folder_ / "").c_str(), &disk), 0);
    write_file(folder_ / "filler", Bytes(disk.f_bavail * disk.f_bsize, 1));
  }
  void make_room() { std::filesystem::remove(folder_ / "filler"); }

 private:
  TempFolder folder_;
  bool mounted_ = false;
};

/// Files of this process may not grow beyond that.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  void (*handler_)(int);
  rlimit before_{};
};

/// Frames of some 100 kB, every one a start.
Clip large_frames() {
  return encode_clip({.video = "mpeg2video", .width = 1280, .height = 720, .gop = 1});
}

TEST(OutputFailureTest, AFullDiskPausesTheOutput) {
  TestOutput output(full_device(), TestOutput::WhenFull::kDrop);
  output.start();
  output.push(encode_clip({}));
  EXPECT_TRUE(comes_true([&] { return output.dropped(PacketDrop::kDiskFull) > 0; }));
  EXPECT_TRUE(comes_true([&] { return output.stats.paused.load(); }));
  EXPECT_TRUE(comes_true([&] { return output.stats.state().first == FeedState::kBackoff; }));
  EXPECT_THAT(output.stats.state().second, HasSubstr("No space left"));
  EXPECT_GE(output.reconnects(IoFault::kIo), 1u);
}

TEST(OutputFailureTest, RunOnceFailsAtTheFirstFailure) {
  TestOutput output(full_device());
  EXPECT_THROW(output.write(encode_clip({}), true), IoError);
  EXPECT_EQ(output.stats.state().first, FeedState::kFailed);
}

TEST(OutputFailureTest, WhoPushesIntoAFailedOutputIsNotHeldUp) {
  OutputOptions options = full_device();
  options.queue = 1;
  TestOutput output(options);
  output.start(true);
  output.push(encode_clip({}));  // more than fits, and nobody pops
  EXPECT_THROW(output.finish(), IoError);
  EXPECT_EQ(output.dropped(), 50u);
}

class FullDiskTest : public ::testing::TestWithParam<const char*> {};

TEST_P(FullDiskTest, TheOutputResumesAtAKeyframeWhenThereIsRoom) {
  TinyDisk disk;
  if (!disk.mounted()) GTEST_SKIP() << "mounting a file system needs root";
  OutputOptions options = output_to(disk / GetParam());
  options.options.push_back({"hls_time", "0.4", true});
  TestOutput output(options, TestOutput::WhenFull::kDrop);
  disk.fill();
  output.start();
  const Clip clip = encode_clip({.frames = 250});
  Clip more = later(clip, 0);
  std::size_t next = 0;
  const auto push_until = [&](const std::function<bool()>& condition) {
    return comes_true([&] {
      if (next == more.packets.size()) {
        more = later(more, 250);
        next = 0;
      }
      output.push(more, next++, 1);
      return condition();
    });
  };
  EXPECT_TRUE(push_until([&] { return output.dropped(PacketDrop::kDiskFull) > 0; }));
  disk.make_room();
  const std::uint64_t bytes = output.stats.bytes;
  EXPECT_TRUE(push_until([&] { return output.stats.up && output.stats.bytes > bytes + 30'000; }));
  output.finish();
  bool playable = false;
  for (const std::string& name : names_in(disk / "")) {
    if (!name.ends_with(".part") && name != "filler" && !name.ends_with(".tmp")) {
      playable |= decoded_frames(disk / name) >= 10;
    }
  }
  EXPECT_TRUE(playable);
}

INSTANTIATE_TEST_SUITE_P(Containers, FullDiskTest,
                         ::testing::Values("cam.mp4", "cam.ts", "cam.mkv", "cam.m3u8"));

TEST(OutputFailureTest, AFullDiskIsRelievedOfWhatIsTooOld) {
  TinyDisk disk;
  if (!disk.mounted()) GTEST_SKIP() << "mounting a file system needs root";
  OutputOptions options = output_to(disk / "cam-%s.ts");
  options.segment = SegmentOptions{.length = 1h, .keep_age = 12h, .keep_bytes = {}};
  TestOutput output(options, TestOutput::WhenFull::kDrop);
  output.start();
  Clip clip = encode_clip({.frames = 250});
  output.push(clip);
  ASSERT_TRUE(comes_true([&] { return output.stats.up && output.stats.queue_packets == 0; }));
  // Its start is over: what is old from now on goes for want of room alone.
  const std::string old = disk / "cam-1000000000.ts";
  write_file(old, Bytes(150'000, 1));
  std::filesystem::last_write_time(old, std::filesystem::file_time_type::clock::now() - 24h);
  disk.fill();
  EXPECT_TRUE(comes_true([&] {
    clip = later(clip, 250);
    output.push(clip);
    return output.dropped(PacketDrop::kDiskFull) > 0;
  }));
  EXPECT_TRUE(comes_true([&] { return !std::filesystem::exists(old); }));
}

class FileSizeLimitTest : public ::testing::TestWithParam<const char*> {};

TEST_P(FileSizeLimitTest, AFileThatMayNotGrowStaysPlayableAndTheNextOneFollows) {
  const TempFolder folder;
  TestOutput output(output_to(folder / (std::string("out.") + GetParam())));
  Clip clip = large_frames();
  const FileSizeLimit limit(1'500'000);
  output.start();
  EXPECT_TRUE(comes_true([&] {
    output.push(clip);
    clip = later(clip, 50);
    return output.reconnects(IoFault::kIo) >= 2;
  }));
  output.stop.request_stop();
  output.join();
  EXPECT_GT(output.dropped(PacketDrop::kWriteFailed), 0u);
  const std::set<std::string> names = names_in(folder / "");
  EXPECT_GE(names.size(), 2u);
  for (const std::string& name : names) {
    EXPECT_FALSE(name.ends_with(".part")) << name;
    EXPECT_GE(probe(folder / name, "frame=best_effort_timestamp").size(), 2u) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Files, FileSizeLimitTest, ::testing::Values("mp4", "mkv", "ts"),
                         [](const auto& test) { return std::string(test.param); });

TEST(OutputFailureTest, AnOutputInTroubleHoldsUpNoOther) {
  const TempFolder folder;
  const Port port;  // refuses
  TestOutput gone(peer(port));
  TestOutput file(output_to(folder / "out.ts"));
  PacketFanout fanout({&gone.output.inlet(), &file.output.inlet()});
  gone.start();
  file.start();
  const Clip clip = encode_clip({.frames = 500});  // more than fits into the queue
  for (const ClipPacket& p : clip.packets) fanout.publish(*p.packet, p.stream, clip.format, {});
  fanout.finish();
  gone.join();
  file.join();
  EXPECT_GT(gone.dropped(), 0u);
  EXPECT_EQ(file.dropped(), 0u);
  EXPECT_EQ(decoded_frames(folder / "out.ts"), 500u);
}

TEST(OutputFailureTest, AProducerWaitsForASlowReader) {
  const TempFolder folder;
  OutputOptions options = fifo(folder);
  options.queue = 4;
  options.timeout = 60s;
  const int opened = open(options.url.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  const Clip clip = large_frames();
  TestOutput output(options);
  output.start(true);
  auto pushed = std::async(std::launch::async, [&] { output.push(clip); });
  EXPECT_TRUE(comes_true([&] { return output.stats.queue_packets == 4; }));
  std::jthread reader([&] { copy_file(options.url, folder / "copy.ts"); });
  pushed.get();
  output.finish();
  reader.join();
  close(opened);
  EXPECT_EQ(output.dropped(), 0u);
  EXPECT_EQ(decoded_frames(folder / "copy.ts"), 50u);
}

TEST(OutputFailureTest, WhatIsQueuedWhenTheFeedIsCancelledIsStillWritten) {
  const TempFolder folder;
  TestOutput output(output_to(folder / "out.ts"));
  const Clip clip = large_frames();
  output.push(clip);  // all of it is queued before the first packet is written
  output.start();
  EXPECT_TRUE(comes_true([&] { return output.stats.up.load(); }));
  output.stop.request_stop();
  output.join();
  EXPECT_EQ(output.dropped(), 0u);
  EXPECT_EQ(decoded_frames(folder / "out.ts"), 50u);
}

TEST(OutputFailureTest, ARefusedPeerIsTriedAgain) {
  const Port port;
  TestOutput output(peer(port), TestOutput::WhenFull::kDrop);
  output.start();
  const Clip clip = encode_clip({.gop = 1});
  std::size_t next = 0;
  EXPECT_TRUE(comes_true([&] {
    output.push(clip, next++ % clip.packets.size(), 1);
    return output.reconnects(IoFault::kRefused) >= 2;
  }));
  EXPECT_FALSE(output.stats.up);
}

TEST(OutputFailureTest, AFifoThatNobodyReadsIsTriedAgain) {
  const TempFolder folder;
  TestOutput output(fifo(folder), TestOutput::WhenFull::kDrop);
  output.start();
  const Clip clip = encode_clip({.gop = 1});
  std::size_t next = 0;
  EXPECT_TRUE(comes_true([&] {
    output.push(clip, next++ % clip.packets.size(), 1);
    return output.reconnects(IoFault::kRefused) >= 2;
  }));
  EXPECT_THAT(output.stats.state().second, HasSubstr("nobody reads the FIFO"));
}

TEST(OutputFailureTest, AStopEndsTheWaitForAFifosReader) {
  const TempFolder folder;
  OutputOptions options = fifo(folder);
  options.timeout = 60s;
  TestOutput output(options);
  output.start();
  output.push(encode_clip({}));
  EXPECT_TRUE(comes_true([&] { return output.stats.queue_packets < 50; }));  // it has begun
  output.stop.request_stop();
  EXPECT_TRUE(output.joined_within(1500ms));
}

TEST(OutputFailureTest, AFifoWhoseReaderStallsEndsAtTheDeadline) {
  const TempFolder folder;
  const OutputOptions options = fifo(folder);
  const int reader = open(options.url.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  TestOutput output(options, TestOutput::WhenFull::kDrop);
  output.start();
  const Clip clip = encode_clip({.video = "mpeg2video", .width = 1280, .height = 720, .gop = 1});
  std::size_t next = 0;
  EXPECT_TRUE(comes_true([&] {
    output.push(clip, next++ % clip.packets.size(), 1);
    return output.reconnects(IoFault::kTimeout) >= 1;
  }));
  output.stop.request_stop();
  output.join();
  close(reader);
}

TEST(OutputFailureTest, AFifosReaderGetsEveryFrame) {
  const TempFolder folder;
  OutputOptions options = fifo(folder);
  options.timeout = 10s;
  std::jthread reader([&] { copy_file(options.url, folder / "copy.ts"); });
  TestOutput(options).write(encode_clip({}), true);
  reader.join();
  EXPECT_EQ(decoded_frames(folder / "copy.ts"), 50u);
}

TEST(OutputFailureTest, AContainerThatRefusesTheCodecSaysWhy) {
  const TempFolder folder;
  TestOutput output(output_to(folder / "b.y4m"));
  const FfmpegErrors errors;
  try {
    output.write(encode_clip({}));
    ADD_FAILURE() << "it was accepted";
  } catch (const FeedError& error) {
    EXPECT_EQ(error.code(), FeedFault::kConfiguration);
    EXPECT_THAT(error.what(), HasSubstr("Codec not supported"));
  }
  EXPECT_EQ(errors.logged(), 0);
}

TEST(OutputFailureTest, ARefusedPeerIsReportedOnce) {
  const Port port;
  TestOutput output(peer(port));
  const FfmpegErrors errors;
  try {
    output.write(encode_clip({}), true);
    ADD_FAILURE() << "it connected";
  } catch (const IoError& error) {
    EXPECT_THAT(error.what(), ::testing::EndsWith(": Connection refused"));
  }
  EXPECT_EQ(errors.logged(), 0);
}

TEST(OutputFailureTest, AChangeOfFormatConnectsToThePeerAnew) {
  const TempFolder folder;
  Port port;
  port.listen();
  OutputOptions options = peer(port);
  options.timeout = 60s;
  TestOutput output(options);
  output.start();
  output.push(encode_clip({}));
  output.push(encode_clip({.width = 96, .start = 50}));
  output.finish();  // the kernel keeps both connections and what they sent until they are accepted
  EXPECT_EQ(output.dropped(), 0u);
  for (const int width : {64, 96}) {
    const std::string path = folder / (std::to_string(width) + ".ts");
    port.receive(path);
    EXPECT_EQ(probe_text(path, "v:0", "stream=width"), std::to_string(width));
    EXPECT_EQ(decoded_frames(path), 50u);
  }
}

TEST(OutputFailureTest, AFrozenPeerEndsAtTheDeadline) {
  Port port;
  port.listen();  // the kernel connects; nobody ever reads
  TestOutput output(peer(port), TestOutput::WhenFull::kDrop);
  output.start();
  const Clip clip = encode_clip({.video = "mpeg2video", .width = 1280, .height = 720, .gop = 1});
  std::size_t next = 0;
  EXPECT_TRUE(comes_true([&] {
    output.push(clip, next++ % clip.packets.size(), 1);
    return output.reconnects(IoFault::kTimeout) >= 1;
  }));
}

TEST(OutputFailureTest, AStopEndsAWriteToAFrozenPeer) {
  Port port;
  port.listen();
  OutputOptions options = peer(port);
  options.timeout = 60s;
  TestOutput output(options);
  output.start();
  const Clip clip = encode_clip({.video = "mpeg2video", .width = 1280, .height = 720, .gop = 1});
  std::jthread producer([&] {
    for (std::int64_t shift = 0; !output.stop.stop_requested(); shift += 50) {
      output.push(later(clip, shift));
    }
  });
  // The kernel's buffers are full when nothing has gone out for a while.
  std::uint64_t bytes = 0;
  auto changed = std::chrono::steady_clock::now();
  EXPECT_TRUE(comes_true([&] {
    const auto now = std::chrono::steady_clock::now();
    if (std::exchange(bytes, output.stats.bytes) != output.stats.bytes) changed = now;
    return bytes > 0 && now - changed > 200ms;
  }));
  output.stop.request_stop();
  EXPECT_TRUE(output.joined_within(1500ms));
}

TEST(OutputFailureTest, AnOutputThatComesBackStartsWithTheCachedGroup) {
  Port port;
  TestOutput output(peer(port), TestOutput::WhenFull::kDrop);
  PacketFanout fanout({&output.output.inlet()});
  output.start();
  const Clip clip = encode_clip({.frames = 2000, .gop = 2000, .global_header = false});
  std::size_t next = 0;
  const auto publish = [&] {
    if (next == clip.packets.size()) return;
    fanout.publish(*clip.packets[next++].packet, StreamKind::kVideo, clip.format, {});
  };
  // One keyframe in all: an output that has lost it can only come back with the cache's.
  ASSERT_TRUE(comes_true([&] {
    if (next < 20) publish();
    return next == 20 && output.reconnects(IoFault::kRefused) >= 1;
  }));
  port.listen();
  EXPECT_TRUE(comes_true([&] {
    publish();
    return output.stats.up.load();
  }));
  const int peer_fd = port.accept();
  char byte = 0;
  EXPECT_EQ(recv(peer_fd, &byte, 1, 0), 1);
  close(peer_fd);
}

TEST(OutputFailureTest, AFullQueueOfALiveFeedLosesPacketsUpToAKeyframe) {
  const TempFolder folder;
  OutputOptions options = output_to(folder / "out.ts");
  options.queue = 14;
  TestOutput output(options, TestOutput::WhenFull::kDrop);
  const Clip clip = encode_clip({});
  output.push(clip, 0, 18);  // 14 fit, one finds it full, three have lost their reference
  EXPECT_EQ(output.dropped(PacketDrop::kQueueFull), 1u);
  EXPECT_EQ(output.dropped(PacketDrop::kWaitKeyframe), 3u);
  output.start();
  EXPECT_TRUE(comes_true([&] { return output.stats.queue_packets == 0; }));
  output.push(clip, 18, 2 + 10);
  output.finish();
  EXPECT_EQ(output.dropped(PacketDrop::kWaitKeyframe), 5u);
  EXPECT_EQ(decoded_frames(folder / "out.ts"), 24u);
}

TEST(OutputFailureTest, AStopReleasesAProducerThatWaits) {
  const TempFolder folder;
  OutputOptions options = output_to(folder / "out.ts");
  options.queue = 1;
  TestOutput output(options);
  const Clip clip = encode_clip({});
  auto pushed = std::async(std::launch::async, [&] { output.push(clip, 0, 3); });
  EXPECT_TRUE(comes_true([&] { return output.stats.queue_packets == 1; }));
  output.stop.request_stop();
  EXPECT_EQ(pushed.wait_for(5s), std::future_status::ready);
}

}  // namespace
}  // namespace framelane
