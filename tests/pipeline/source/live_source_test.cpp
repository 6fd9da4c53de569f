// Sources on the network.
#include "pipeline/source/stream_source.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>

#include "tests/pipeline/source/source_fixture.hpp"

namespace framelane {
namespace {

using namespace std::chrono_literals;
using testing::Bytes;
using testing::clip;
using testing::ffmpeg;

/// A TCP port on the loopback interface.
class Listener {
 public:
  Listener() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(fd, 1), 0);
    EXPECT_EQ(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
  }
  ~Listener() { ::close(fd); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  std::string place() const { return "127.0.0.1:" + std::to_string(port_); }

  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

 private:
  int port_ = 0;
};

class LiveSourceTest : public testing::SourceFixture {
 protected:
  /// The street clip as a transport stream; `options` are ffmpeg's, of the output.
  Bytes transport_stream(const std::string& options = "") {
    const std::string path = folder / "clip.ts";
    ffmpeg("-i " + clip("street_h264.mp4") + " -c copy " + options + " " + path);
    return testing::read_file(path);
  }
  std::unique_ptr<Source> open_transport_stream(const Listener& listener) {
    decode = false;
    input.format = "mpegts";
    return open("tcp://" + listener.place());
  }
};

TEST_F(LiveSourceTest, APeerThatSaysNothingTimesOut) {
  const Listener listener;  // the kernel completes connections that nobody accepts
  input.timeout = 100ms;
  EXPECT_EQ(failure_of<IoError>("rtsp://" + listener.place() + "/1"), IoFault::kTimeout) << message;
}

TEST_F(LiveSourceTest, WhatALiveSourceSentBeforeItWasLostIsDelivered) {
  const Bytes bytes = transport_stream();
  const Listener listener;
  std::jthread camera([&] {
    const int peer = ::accept(listener.fd, nullptr, nullptr);
    EXPECT_EQ(::send(peer, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    char nothing = 0;
    ::recv(peer, &nothing, 1, 0);  // until the other side leaves
    ::close(peer);
  });
  input.timeout = 500ms;
  input.options = {{"probesize", "32768"}};  // the rest is read by us
  auto source = open_transport_stream(listener);
  std::size_t packets = 0;
  SourceItem item;
  const auto read_all = [&] {
    while (source->read(item) == ReadResult::kItem) ++packets;
  };
  EXPECT_THROW(read_all(), IoError);
  EXPECT_GE(packets, 41u);  // of 42: the last one's end did not come
  source.reset();
}

TEST_F(LiveSourceTest, ATimestampThatJumpsInTheFirstBurstDoesNotSayWhenPicturesWereTaken) {
  // A picture of the burst is 8 s ahead of the others.
  const Bytes bytes = transport_stream("-bsf:v \"setts=pts=PTS+if(eq(N\\,10)\\,655360\\,0)\"");
  const Listener listener;
  const auto begin = std::chrono::steady_clock::now();
  std::jthread camera([&] {
    const int peer = ::accept(listener.fd, nullptr, nullptr);
    EXPECT_EQ(::send(peer, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    ::close(peer);
  });
  auto source = open_transport_stream(listener);
  SourceItem item;
  ASSERT_EQ(source->read(item), ReadResult::kItem);
  // The last picture, 4.1 s behind the first, was taken when it came.
  ASSERT_TRUE(line_clock.taken_at(5s));
  EXPECT_GT(*line_clock.taken_at(5s), begin);
}

// A parser gives out the delimiter of the next picture, though nothing else of that has come.
TEST_F(LiveSourceTest, TheBeginningOfAPictureThatDoesNotComeIsNoPacket) {
  const std::string path = folder / "clip.h264";
  ffmpeg("-i " + clip("street_h264.mp4") +
         " -c copy -frames:v 10 -bsf:v h264_metadata=aud=insert " + path);
  Bytes bytes = testing::read_file(path);
  for (const int byte : {0, 0, 0, 1, 9, 0xf0}) bytes.push_back(static_cast<std::uint8_t>(byte));
  const Listener listener;
  std::jthread camera([&] {
    const int peer = ::accept(listener.fd, nullptr, nullptr);
    EXPECT_EQ(::send(peer, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    ::close(peer);
  });
  decode = false;
  input.format = "h264";
  auto source = open("tcp://" + listener.place());
  std::size_t packets = 0;
  SourceItem item;
  const auto read_all = [&] {
    while (source->read(item) == ReadResult::kItem) ++packets;
  };
  EXPECT_THROW(read_all(), IoError);
  EXPECT_EQ(packets, 10u);
  source.reset();
}

// As of an encoder that plays a file again and again.
TEST_F(LiveSourceTest, ReadingAheadEndsThoughTimestampsHaveGoneBack) {
  const Bytes bytes = transport_stream("-frames:v 10");
  const Listener listener;
  constexpr int kRounds = 110;  // more than are read ahead at most
  std::atomic<int> rounds{0};
  std::jthread camera([&](const std::stop_token& over) {
    const int peer = ::accept(listener.fd, nullptr, nullptr);
    while (!over.stop_requested() && rounds < kRounds) {
      ::send(peer, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      ++rounds;
      std::this_thread::sleep_for(20ms);
    }
    ::close(peer);
  });
  auto source = open_transport_stream(listener);
  SourceItem item;
  ASSERT_EQ(source->read(item), ReadResult::kItem);
  EXPECT_LT(rounds, 100);
  camera.request_stop();
  source.reset();
}

}  // namespace
}  // namespace framelane
