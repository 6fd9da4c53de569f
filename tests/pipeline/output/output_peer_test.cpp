// Longer than 400 lines: all ways in which a peer or a reader fails, with the same peers.
// Outputs and what is at their other end: network peers, FIFOs, and producers that wait.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <fstream>
#include <future>
#include <stdexcept>
#include <thread>

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

TEST(OutputPeerTest, APeerThatDoesNotAnswerIsGivenUpSoonAfterTheDrain) {
  Port port;
  port.listen();
  for (const bool once : {false, true}) {
    OutputOptions options = output_to("rtmp" + port.url().substr(3) + "/live/a");
    options.timeout = 1min;
    options.queue = 64;
    TestOutput output(options);
    output.start(once);
    output.push(encode_clip({}));
    const int connection = port.accept();
    ASSERT_GE(connection, 0);
    output.drain.request_stop();
    output.output.inlet().finish();
    EXPECT_TRUE(output.joined_within(6s));
    output.stop.request_stop();
    output.join();
    EXPECT_EQ(output.dropped(PacketDrop::kStop), 50u);
    EXPECT_EQ(output.dropped(), 50u);
    close(connection);
  }
}

TEST(OutputPeerTest, AnOutputInTroubleHoldsUpNoOther) {
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

TEST(OutputPeerTest, AProducerWaitsForASlowReader) {
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

TEST(OutputPeerTest, WhatIsQueuedWhenTheFeedIsCancelledIsStillWritten) {
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

TEST(OutputPeerTest, ARefusedPeerIsTriedAgain) {
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

TEST(OutputPeerTest, WhatWaitsForAKeyframeAfterAFailureDependsOnWhatWasLost) {
  const Port port;
  TestOutput output(peer(port), TestOutput::WhenFull::kDrop);
  output.start();
  const Clip clip = encode_clip({});
  output.push(clip, 0, 1);
  ASSERT_TRUE(comes_true([&] { return output.reconnects(IoFault::kRefused) >= 1; }));
  EXPECT_TRUE(comes_true([&] {
    output.push(clip, 1, 1);
    return output.stats.dependents_dropped > 0;
  }));
  EXPECT_EQ(output.dropped(PacketDrop::kQueueFull), 0u);
}

TEST(OutputPeerTest, AFifoThatNobodyReadsIsTriedAgain) {
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

TEST(OutputPeerTest, AStopEndsTheWaitForAFifosReader) {
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

TEST(OutputPeerTest, AFifoWhoseReaderStallsEndsAtTheDeadline) {
  const TempFolder folder;
  const OutputOptions options = fifo(folder);
  const int reader = open(options.url.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  TestOutput output(options, TestOutput::WhenFull::kDrop);
  output.start();
  const Clip clip = large_frames();
  std::size_t next = 0;
  EXPECT_TRUE(comes_true([&] {
    output.push(clip, next++ % clip.packets.size(), 1);
    return output.reconnects(IoFault::kTimeout) >= 1;
  }));
  output.stop.request_stop();
  output.join();
  close(reader);
}

TEST(OutputPeerTest, AFifosReaderGetsEveryFrame) {
  const TempFolder folder;
  OutputOptions options = fifo(folder);
  options.timeout = 10s;
  std::jthread reader([&] { copy_file(options.url, folder / "copy.ts"); });
  TestOutput(options).write(encode_clip({}), true);
  reader.join();
  EXPECT_EQ(decoded_frames(folder / "copy.ts"), 50u);
}

TEST(OutputPeerTest, AContainerThatRefusesTheCodecSaysWhy) {
  const TempFolder folder;
  TestOutput output(output_to(folder / "b.y4m"));
  const FfmpegErrors errors;
  try {
    output.write(encode_clip({}), true);
    ADD_FAILURE() << "it was accepted";
  } catch (const FeedError& error) {
    EXPECT_EQ(error.code(), FeedFault::kConfiguration);
    EXPECT_THAT(error.what(), HasSubstr("Codec not supported"));
  }
  EXPECT_EQ(errors.logged(), 0);
}

TEST(OutputPeerTest, ARefusedPeerIsReportedOnce) {
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

TEST(OutputPeerTest, AChangeOfFormatConnectsToThePeerAnew) {
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

TEST(OutputPeerTest, AFrozenPeerEndsAtTheDeadline) {
  Port port;
  port.listen();  // the kernel connects; nobody ever reads
  TestOutput output(peer(port), TestOutput::WhenFull::kDrop);
  output.start();
  const Clip clip = large_frames();
  std::size_t next = 0;
  EXPECT_TRUE(comes_true([&] {
    output.push(clip, next++ % clip.packets.size(), 1);
    return output.reconnects(IoFault::kTimeout) >= 1;
  }));
}

TEST(OutputPeerTest, AStopEndsAWriteToAFrozenPeer) {
  Port port;
  port.listen();
  OutputOptions options = peer(port);
  options.timeout = 60s;
  TestOutput output(options);
  output.start();
  const Clip clip = large_frames();
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

TEST(OutputPeerTest, AnOutputThatComesBackStartsWithTheCachedGroup) {
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
  // There is only one keyframe: an output that has lost it can only begin with the cached one.
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

TEST(OutputPeerTest, AFullQueueOfALiveFeedLosesPacketsUpToAKeyframe) {
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

TEST(OutputPeerTest, AStopReleasesAProducerThatWaits) {
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
