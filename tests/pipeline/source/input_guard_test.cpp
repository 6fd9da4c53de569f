// Not built for ThreadSanitizer: one thread reads.
#include "pipeline/source/input_guard.hpp"

#include <gmock/gmock.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <deque>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>

#include "pipeline/base/file_descriptor.hpp"
#include "tests/pipeline/source/source_fixture.hpp"

namespace framelane {
namespace {

using testing::clip;
using testing::ffmpeg;
using ::testing::HasSubstr;

/// Files, which tests can make without a server. tests/integration/test_untrusted_inputs.py has the
/// same tricks over HTTP.
class InputGuardTest : public testing::SourceFixture {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(folder / name, std::ios::binary) << text;
    return folder / name;
  }
  /// What is wrong with an input that cannot be used, and is no live one.
  std::string refusal_of(const std::string& url) {
    EXPECT_EQ(failure_of<FeedError>(url), FeedFault::kConfiguration);
    return message;
  }
  std::string segment() {
    ffmpeg("-i " + clip("street_h264.mp4") + " -c copy " + (folder / "1.ts"));
    return "1.ts";
  }
};

constexpr std::string_view kBegin = "#EXTM3U\n#EXT-X-TARGETDURATION:5\n";

TEST_F(InputGuardTest, AFileMayNotNameTheWeb) {
  for (const char* line : {"#EXTINF:5,\nhttp://127.0.0.1:9/1.ts\n",
                           "#EXT-X-MAP:URI=\"http://127.0.0.1:9/1.ts\"\n#EXTINF:5,\n1.ts\n",
                           "#EXT-X-KEY:METHOD=AES-128,URI=\"http://127.0.0.1:9/1.ts\"\r\n"}) {
    const std::string url = write("x.m3u8", std::string(kBegin) + line + "#EXT-X-ENDLIST\n");
    EXPECT_EQ(refusal_of(url), url +
                                   " names http://127.0.0.1:9/1.ts, and a file may not open URLs "
                                   "of http; input.protocols: [default, http] allows it");
  }
}

TEST_F(InputGuardTest, APlaylistIsReadToItsLastLine) {
  const std::string url =
      write("x.m3u8", std::string(kBegin) + "#EXTINF:5,\n" + segment() + "\n#EXT-X-ENDLIST");
  EXPECT_EQ(read(url).frames, 42u);
  input.limits.playlist_size = 1000;
  std::string text(kBegin);
  const std::string end = "#EXTINF:5,\n" + segment() + "\n#EXT-X-ENDLIST\n";
  while (text.size() + end.size() < 1000) text += '#';
  EXPECT_EQ(read(write("x.m3u8", text.substr(0, text.size() - 1) + '\n' + end)).frames, 42u);
}

TEST_F(InputGuardTest, APlaylistThatIsTooLargeIsRefused) {
  input.limits.playlist_size = 1000;
  for (const std::string& begin : {std::string(kBegin), std::string("<MPD "),
                                   std::string("\xEF\xBB\xBF<?xml version=\"1.0\"?>")}) {
    const std::string url = write("x.m3u8", begin + std::string(2000, '\n'));
    EXPECT_EQ(refusal_of(url), url +
                                   " sends a playlist of more than input.limits.playlist_size "
                                   "(1000 bytes); raise it if that is right");
  }
}

TEST_F(InputGuardTest, AScriptOfConcatReadsFilesAlone) {
  const std::string script =
      write("x.ffconcat", "ffconcat version 1.0\nfile " + segment() + "\nfile 1.ts\n");
  EXPECT_EQ(read(script).frames, 84u);
  input.formats = {"mov", "mpegts"};
  EXPECT_EQ(refusal_of(script),
            script +
                " is of the format concat, which input.formats does not allow; input.formats: "
                "[mov, mpegts, concat] allows it");
}

TEST_F(InputGuardTest, MoreStreamsThanAllowedAreRefused) {
  const std::string path = folder / "four.mkv";
  ffmpeg("-i " + clip("street_h264.mp4") +
         " -f lavfi -i sine=duration=1 -map 0:v -map 1:a -map 1:a -map 1:a -c:v copy -t 1 " + path);
  input.limits.streams = 4;
  EXPECT_GT(read(path).frames, 0u);
  input.limits.streams = 3;
  EXPECT_EQ(refusal_of(path), path +
                                  " has more streams than input.limits.streams allows (3); raise "
                                  "it if that is right");
}

TEST_F(InputGuardTest, LargerPicturesThanAllowedAreRefused) {
  const std::string path = clip("street_h264.mp4");  // 768x576
  input.limits.pixels = 768 * 576;
  EXPECT_EQ(read(path).frames, 42u);
  input.limits.pixels -= 1;
  EXPECT_EQ(refusal_of(path), path +
                                  " has pictures of 768x576, more than input.limits.pixels allows "
                                  "(442367 pixels); raise it if that is right");
}

TEST_F(InputGuardTest, PicturesThatGrowBeyondTheLimitEndTheSource) {
  const std::string small = folder / "small.ts";
  const std::string large = folder / "large.ts";
  for (const auto& [path, size] : {std::pair(small, "64x48"), std::pair(large, "640x480")}) {
    ffmpeg("-f lavfi -i testsrc2=rate=10:duration=1:size=" + std::string(size) +
           " -c:v libx264 -bf 0 " + path);
  }
  const testing::Bytes tail = testing::read_file(large);
  testing::Bytes both = testing::read_file(small);
  both.insert(both.end(), tail.begin(), tail.end());
  testing::write_file(folder / "both.ts", both);
  EXPECT_EQ(read(folder / "both.ts").frames, 20u);
  input.limits.pixels = 320 * 240;
  EXPECT_THAT(refusal_of(folder / "both.ts"), HasSubstr("has pictures of 640x480, more than"));
}

/// A part of an MP4, or of what came before it.
std::string box(const std::string& kind, const std::string& data) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) {
    text += static_cast<char>((8 + data.size()) >> shift & 255);
  }
  return text + kind + data;
}

TEST_F(InputGuardTest, AHeaderThatClaimsMoreMemoryThanAllowedNamesTheLimit) {
  const std::string index = std::string("\x70\0\0\0", 4) + "packed";  // 1.9 GB
  const std::string url =
      write("old.mov", box("ftyp", std::string("qt  \0\0\0\0", 8)) +
                           box("moov", box("cmov", box("dcom", "zlib") + box("cmvd", index))));
  EXPECT_EQ(failure_of<IoError>(url), IoFault::kIo);
  EXPECT_THAT(message, HasSubstr("cannot open " + url + ": threads or memory are short"));
  EXPECT_THAT(message, HasSubstr("than input.limits.pixels stands for: raise that if the input"));
}

TEST_F(InputGuardTest, ADecoderThatIsNotAllowedIsNotUsed) {
  input.decoders = {"mjpeg"};
  EXPECT_EQ(refusal_of(clip("street_h264.mp4")),
            "the source's video needs the decoder h264, which input.decoders does not allow; "
            "input.decoders: [mjpeg, h264] allows it");
  EXPECT_EQ(faults(DecodeFault::kUnsupported), 1u);
  decode = false;  // nothing is decoded
  EXPECT_GT(read(clip("street_h264.mp4")).packet_pts.size(), 0u);
}

/// What FFmpeg does with the addresses of a name: it connects to each, without waiting for one.
class RefusedAddressTest : public ::testing::Test {
 protected:
  RefusedAddressTest() {
    listener_address_.sin_family = AF_INET;
    listener_address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof listener_address_;
    EXPECT_EQ(::bind(listener_.get(), as_address(listener_address_), size), 0);
    EXPECT_EQ(::listen(listener_.get(), 0), 0);
    EXPECT_EQ(
        ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&listener_address_), &size), 0);
  }
  static const sockaddr* as_address(const sockaddr_in& address) {
    return reinterpret_cast<const sockaddr*>(&address);
  }
  /// The state of TCP of a new socket that connects to the listener. It stays open.
  int connect_to_listener(int flags = 0) {
    const FileDescriptor& socket = sockets_.emplace_back(::socket(AF_INET, SOCK_STREAM | flags, 0));
    (void)::connect(socket.get(), as_address(listener_address_), sizeof listener_address_);
    tcp_info info{};
    socklen_t size = sizeof info;
    EXPECT_EQ(getsockopt(socket.get(), IPPROTO_TCP, TCP_INFO, &info, &size), 0);
    return info.tcpi_state;
  }
  static void connect_to_what_is_refused() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(0xa9fea9fe);  // 169.254.169.254
    const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
    EXPECT_EQ(::connect(socket.get(), as_address(address), sizeof address), -1);
    EXPECT_EQ(errno, EACCES);
  }
  static InputOptions from_loopback() {
    InputOptions options;
    options.url = "http://127.0.0.1/1.ts";
    return options;
  }

  InputGuard guard_{from_loopback()};
  const FileDescriptor listener_{::socket(AF_INET, SOCK_STREAM, 0)};
  sockaddr_in listener_address_{};
  std::deque<FileDescriptor> sockets_;
};

TEST_F(RefusedAddressTest, IsTheCauseOfAFailureBehindARedirect) {
  const CallCheck check = guard_.check_calls();
  EXPECT_EQ(connect_to_listener(), TCP_ESTABLISHED);
  sockets_.clear();
  connect_to_what_is_refused();
  EXPECT_THAT(guard_.unreachable_by(AVERROR(EACCES)), HasSubstr("leads to 169.254.169.254"));
  EXPECT_THAT(guard_.refusal_in(AVERROR(EIO), {}), HasSubstr("leads to 169.254.169.254"));
}

TEST_F(RefusedAddressTest, IsNoCauseIfAnotherOneIsReachedThen) {
  const CallCheck check = guard_.check_calls();
  connect_to_what_is_refused();
  EXPECT_EQ(connect_to_listener(), TCP_ESTABLISHED);
  EXPECT_EQ(guard_.unreachable_by(AVERROR(EIO)), "");
}

TEST_F(RefusedAddressTest, IsNoCauseWhileAnotherOneOfTheNameMayStillAnswer) {
  const CallCheck check = guard_.check_calls();
  while (connect_to_listener(SOCK_NONBLOCK) == TCP_ESTABLISHED) {  // until its queue is full
    ASSERT_LT(sockets_.size(), 10u);
  }
  connect_to_what_is_refused();
  EXPECT_EQ(guard_.unreachable_by(AVERROR(EIO)), "");
}

TEST_F(RefusedAddressTest, IsNotTheCauseOfAnErrorThatAPeerHasAnswered) {
  const CallCheck check = guard_.check_calls();
  connect_to_what_is_refused();
  EXPECT_EQ(guard_.unreachable_by(AVERROR_HTTP_NOT_FOUND), "");
  EXPECT_EQ(guard_.refusal_in(AVERROR_HTTP_UNAUTHORIZED, {}), "");
}

TEST_F(InputGuardTest, SoundThatMayNotBeDecodedSaysWhy) {
  const std::string path = folder / "sound.mp4";
  ffmpeg("-i " + clip("street_h264.mp4") + " -f lavfi -i sine=duration=1 -c:v copy -c:a aac -t 1 " +
         path);
  want_audio = true;
  EXPECT_EQ(open(path)->info().media->audio->decode_refusal, "");
  input.decoders = {"h264"};
  EXPECT_THAT(open(path)->info().media->audio->decode_refusal,
              HasSubstr("needs the decoder aac, which input.decoders does not allow"));
}

}  // namespace
}  // namespace framelane
