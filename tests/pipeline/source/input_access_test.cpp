// Not built for ThreadSanitizer: one thread.
#include "pipeline/source/input_access.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>

#include <cstring>
#include <utility>

namespace framelane {
namespace {

using ::testing::HasSubstr;

/// An address by its text, with its size.
struct Address {
  explicit Address(const std::string& text) {
    sockaddr_in v4{};
    sockaddr_in6 v6{};
    if (inet_pton(AF_INET, text.c_str(), &v4.sin_addr) == 1) {
      v4.sin_family = AF_INET;
      size = sizeof v4;
      std::memcpy(&storage, &v4, size);
    } else if (inet_pton(AF_INET6, text.c_str(), &v6.sin6_addr) == 1) {
      v6.sin6_family = AF_INET6;
      size = sizeof v6;
      std::memcpy(&storage, &v6, size);
    }
  }
  const sockaddr& get() const { return reinterpret_cast<const sockaddr&>(storage); }

  sockaddr_storage storage{};
  std::size_t size = 0;
};

InputOptions input_of(const std::string& url) {
  InputOptions input;
  input.url = url;
  return input;
}

bool may_open(const InputOptions& input, const std::string& url) {
  return !InputAccess(input).refusal_of_url(url);
}
bool may_open(const std::string& own, const std::string& url) {
  return may_open(input_of(own), url);
}

bool may_reach(const InputOptions& input, const std::string& text) {
  const Address address(text);
  EXPECT_NE(address.size, 0u) << text;
  return !InputAccess(input).refusal_of_address(address.get(), address.size);
}
bool may_reach(const std::string& own, const std::string& text) {
  return may_reach(input_of(own), text);
}

/// "http,tcp" holds "http".
bool lists(const std::string& list, const std::string& name) {
  return ("," + list + ",").find("," + name + ",") != std::string::npos;
}

TEST(AddressKindTest, EveryFormOfLoopbackIsLoopback) {
  for (const char* text :
       {"127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "::1", "::", "::ffff:127.0.0.1",
        "::ffff:0.0.0.0", "::127.0.0.1", "64:ff9b::127.0.0.1"}) {
    const Address address(text);
    EXPECT_EQ(kind_of(address.get(), address.size), AddressKind::kLoopback) << text;
  }
}

TEST(AddressKindTest, EveryFormOfLinkLocalIsLinkLocal) {
  for (const char* text : {"169.254.0.1", "169.254.169.254", "fe80::1", "febf::1",
                           "::ffff:169.254.169.254", "64:ff9b::169.254.169.254"}) {
    const Address address(text);
    EXPECT_EQ(kind_of(address.get(), address.size), AddressKind::kLinkLocal) << text;
  }
}

TEST(AddressKindTest, OthersAreOrdinary) {
  for (const char* text :
       {"10.0.0.4", "192.168.1.1", "128.0.0.1", "126.255.255.255", "169.253.0.1", "170.254.0.1",
        "239.0.0.1", "2001:db8::1", "fec0::1", "fd00::1", "::ffff:10.0.0.4", "64:ff9b::10.0.0.4"}) {
    const Address address(text);
    EXPECT_EQ(kind_of(address.get(), address.size), AddressKind::kOrdinary) << text;
  }
  // Cut short by whoever calls: nothing behind its end is read.
  const Address address("127.0.0.1");
  EXPECT_EQ(kind_of(address.get(), sizeof(sa_family_t)), AddressKind::kOrdinary);
}

TEST(InputAccessTest, WhatComesOverHttpMayNameNothingButTheWeb) {
  const std::string own = "http://10.0.0.4/live.m3u8";
  for (const char* url : {"http://10.0.0.5/1.ts", "https://h/1.ts", "crypto+https://h/1.ts",
                          "crypto:http://h/1.ts", "data:;base64,AAAA"}) {
    EXPECT_TRUE(may_open(own, url)) << url;
  }
  for (const char* url : {"file:///etc/passwd",
                          "/etc/passwd",
                          "etc/passwd",
                          "FILE:/etc/passwd",
                          "rtsp://h/",
                          "tcp://h:22",
                          "tls://h:443",
                          "udp://h:1",
                          "rtp://h:1",
                          "srt://h:1",
                          "ftp://h/",
                          "unix:/x",
                          "pipe:0",
                          "concat:http://h/1|/etc/passwd",
                          "concat:/etc/passwd",
                          "concatf:http://h/x",
                          "subfile,,start,0,end,9,,:/etc/passwd",
                          "subfile,,start,0,end,9,,:http://h/",
                          "crypto:/etc/passwd",
                          "crypto+file:/etc/passwd",
                          "async:file:/etc/passwd",
                          "cache:http://h/",
                          "gopher://h:70/",
                          "lavfi:testsrc",
                          "no-such:x"}) {
    EXPECT_FALSE(may_open(own, url)) << url;
  }
}

TEST(InputAccessTest, AFileMayNameFilesAlone) {
  for (const char* own : {"/srv/index.m3u8", "index.m3u8", "file:/srv/x.ffconcat", "concat:/a|/b",
                          "subfile,,start,0,end,9,,:/a"}) {
    EXPECT_TRUE(may_open(own, "/srv/1.ts")) << own;
    EXPECT_TRUE(may_open(own, "file:/srv/1.ts")) << own;
    EXPECT_FALSE(may_open(own, "http://h/1.ts")) << own;
    EXPECT_FALSE(may_open(own, "rtp://h:1")) << own;
  }
  EXPECT_FALSE(may_open("-", "/srv/1.ts"));  // who knows where that comes from
  EXPECT_TRUE(may_open("-", "data:x"));
  EXPECT_TRUE(may_open("/srv/camera.sdp", "rtp://h:1"));
  InputOptions described = input_of("/srv/camera");
  described.format = "sdp";
  EXPECT_TRUE(may_open(described, "rtp://h:1"));
}

TEST(InputAccessTest, AnotherPeerMayNameNothing) {
  for (const char* own : {"rtsp://h/", "udp://:5000", "srt://h:1", "tcp://h:1", "rtmp://h/a"}) {
    for (const char* url : {"file:/etc/passwd", "http://h/", "data:x"}) {
      EXPECT_FALSE(may_open(own, url)) << own << ' ' << url;
    }
  }
}

TEST(InputAccessTest, TheOperatorsOwnProtocolsAreAllowed) {
  EXPECT_TRUE(may_open("concat:http://h/a|http://h/b", "concat:http://h/c"));
  EXPECT_FALSE(may_open("concat:http://h/a|http://h/b", "concat:/etc/passwd"));
  EXPECT_TRUE(may_open("async:http://h/a", "http://h/b"));
  EXPECT_FALSE(may_open("async:http://h/a", "/etc/passwd"));
  EXPECT_TRUE(may_open("lavfi:movie=x", "http://h/"));  // the operator wrote the graph
}

TEST(InputAccessTest, TheListOfProtocolsReplacesTheDefault) {
  InputOptions input = input_of("http://h/live.m3u8");
  input.protocols = {"default", "file"};
  EXPECT_TRUE(may_open(input, "file:/srv/1.ts"));
  EXPECT_TRUE(may_open(input, "https://h/1.ts"));
  EXPECT_FALSE(may_open(input, "rtsp://h/"));
  input.protocols = {"http"};
  EXPECT_FALSE(may_open(input, "https://h/1.ts"));
  InputOptions encrypted = input_of("https://h/live.m3u8");
  encrypted.protocols = {"https", "crypto", "data"};
  EXPECT_TRUE(may_open(encrypted, "https://other/1.ts"));
  EXPECT_FALSE(may_open(encrypted, "http://h/1.ts"));
  EXPECT_FALSE(
      lists(InputAccess(encrypted).protocols(), "http"));  // FFmpeg asks this at a redirect
  input.protocols = {"rtsp"};                              // what the URL itself has always is
  EXPECT_TRUE(may_open(input, "http://h/1.ts"));
  input.protocols = {"all"};
  EXPECT_TRUE(may_open(input, "gopher://h/"));
  EXPECT_TRUE(lists(InputAccess(input).protocols(), "gopher"));
  input.protocols.clear();
  input.options = {{"protocol_whitelist", "file,udp,rtp"}};  // FFmpeg's own way to say it
  EXPECT_TRUE(may_open(input, "file:/srv/1.ts"));
  EXPECT_FALSE(may_open(input, "https://h/1.ts"));
}

TEST(InputAccessTest, FfmpegGetsTheProtocolsThatOthersAreCarriedBy) {
  const std::string web = InputAccess(input_of("http://h/")).protocols();
  for (const char* name : {"http", "https", "tcp", "tls", "httpproxy", "crypto", "data"}) {
    EXPECT_TRUE(lists(web, name)) << name;
  }
  for (const char* name : {"file", "udp", "rtp", "subfile", "concat", "pipe", "unix"}) {
    EXPECT_FALSE(lists(web, name)) << name;
  }
  const std::string camera = InputAccess(input_of("rtsp://h/")).protocols();
  for (const char* name : {"rtp", "udp", "tcp", "tls"}) EXPECT_TRUE(lists(camera, name)) << name;
  EXPECT_FALSE(lists(camera, "file"));
  EXPECT_EQ(InputAccess(input_of("/srv/x.mp4")).protocols(), "file,crypto,data");
  EXPECT_EQ(InputAccess(input_of("v4l2:/dev/video0")).protocols(), "");
}

TEST(InputAccessTest, ARefusalSaysWhatIsRefusedAndWhatAllowsIt) {
  EXPECT_EQ(InputAccess(input_of("http://h/live.m3u8")).refusal_of_url("file:///etc/passwd"),
            "names file:///etc/passwd, and what comes from the network may not open files; "
            "input.protocols: [default, file] allows it");
  InputOptions file = input_of("/srv/live.m3u8");
  file.protocols = {"file"};
  EXPECT_EQ(InputAccess(file).refusal_of_url("http://u:pass@h/x"),
            "names http://***@h/x, and a file may not open URLs of http; "
            "input.protocols: [file, http] allows it");
  EXPECT_THAT(*InputAccess(file).refusal_of_url("http://h/" + std::string(5000, 'x')),
              ::testing::SizeIs(::testing::Lt(400u)));
}

TEST(InputAccessTest, NoAnswerLeadsToLoopbackOrLinkLocalAddresses) {
  for (const char* own :
       {"http://10.0.0.4/", "https://camera.example/", "rtsp://10.0.0.4/",
        "rtsp://u:p@camera.local/", "rtmp://h/a", "http://127.0.0.1.example/",
        "http://localhost.example/", "concat:http://h/a|http://h/b", "http:/h/", "http:h"}) {
    EXPECT_FALSE(may_reach(own, "127.0.0.1")) << own;
    EXPECT_FALSE(may_reach(own, "::ffff:127.0.0.1")) << own;
    EXPECT_FALSE(may_reach(own, "169.254.169.254")) << own;
    EXPECT_TRUE(may_reach(own, "10.0.0.5")) << own;
    EXPECT_TRUE(may_reach(own, "2001:db8::1")) << own;
  }
}

TEST(InputAccessTest, AUrlThatNamesSuchAnAddressReachesThatKindAlone) {
  for (const char* own :
       {"http://127.0.0.1:8080/", "http://127.1/", "http://0x7f000001/", "http://u:p@[::1]:80/",
        "http://[::ffff:127.0.0.1]/", "http://0.0.0.0/", "rtsp://localhost:8554/x",
        "http://LOCALHOST./", "http://a.localhost/", "rtmp:///live"}) {
    EXPECT_TRUE(may_reach(own, "127.0.0.1")) << own;
    EXPECT_TRUE(may_reach(own, "::1")) << own;
    EXPECT_FALSE(may_reach(own, "169.254.169.254")) << own;
  }
  for (const char* own : {"rtsp://169.254.7.8/", "http://[fe80::1%eth0]/"}) {
    EXPECT_TRUE(may_reach(own, "169.254.1.1")) << own;
    EXPECT_FALSE(may_reach(own, "127.0.0.1")) << own;
  }
}

TEST(InputAccessTest, AddressesAddKinds) {
  InputOptions input = input_of("http://h/");
  input.reach_loopback = true;
  EXPECT_TRUE(may_reach(input, "127.0.0.1"));
  EXPECT_FALSE(may_reach(input, "169.254.1.1"));
  input.reach_link_local = true;
  EXPECT_TRUE(may_reach(input, "169.254.1.1"));
  const Address address("::1");
  EXPECT_EQ(InputAccess(input_of("http://h/")).refusal_of_address(address.get(), address.size),
            "leads to ::1, a loopback address, which input.url does not name itself; add loopback "
            "to input.addresses to allow it");
}

// No answer over these can name another address, and listeners send reports to whoever sends.
TEST(InputAccessTest, AddressesOfPlainPeersAndFilesAreTheOperators) {
  for (const char* own :
       {"udp://:5000", "rtp://h:5000", "srt://h:1", "tcp://h:1", "/srv/x.sdp", "lavfi:movie=x"}) {
    EXPECT_TRUE(may_reach(own, "127.0.0.1")) << own;
  }
}

TEST(InputAccessTest, FormatsThatNameUrlsComeOnlyFromWhereTheyBelong) {
  const auto refused = [](const InputOptions& input, const char* format) {
    const AVInputFormat* demuxer = av_find_input_format(format);
    EXPECT_NE(demuxer, nullptr) << format;
    return InputAccess(input).refusal_of_format(*demuxer);
  };
  for (const char* url : {"http://h/x", "udp://:1", "rtsp://h/"}) {
    for (const char* format : {"concat", "sdp", "imf", "vobsub", "tty"}) {
      EXPECT_TRUE(refused(input_of(url), format)) << url << ' ' << format;
    }
    for (const char* format : {"mov", "mpegts", "matroska", "flv", "mpjpeg", "h264"}) {
      EXPECT_FALSE(refused(input_of(url), format)) << url << ' ' << format;
    }
  }
  EXPECT_FALSE(refused(input_of("http://h/x"), "hls"));
  EXPECT_TRUE(refused(input_of("udp://:1"), "hls"));
  EXPECT_FALSE(refused(input_of("/srv/x"), "concat"));

  InputOptions input = input_of("http://h/x");
  EXPECT_EQ(refused(input, "concat"),
            "is of the format concat, which input.formats does not allow for an input from the "
            "network; input.formats: [default, concat] allows it");
  input.format = "sdp";  // the operator says that it is one
  EXPECT_FALSE(refused(input, "sdp"));
  input.formats = {"mov"};
  EXPECT_TRUE(refused(input, "mpegts"));
  EXPECT_FALSE(refused(input, "mov"));
  input.formats = {"all"};
  EXPECT_FALSE(refused(input, "tty"));
}

TEST(InputAccessTest, DecodersOfTheNetworkAreTheCommonOnes) {
  const InputAccess network(input_of("http://h/x"));
  for (const AVCodecID codec :
       {AV_CODEC_ID_H264, AV_CODEC_ID_HEVC, AV_CODEC_ID_AV1, AV_CODEC_ID_VP9, AV_CODEC_ID_MJPEG,
        AV_CODEC_ID_MPEG2VIDEO, AV_CODEC_ID_MPEG4, AV_CODEC_ID_FLV1, AV_CODEC_ID_JPEG2000,
        AV_CODEC_ID_AAC, AV_CODEC_ID_MP3, AV_CODEC_ID_OPUS, AV_CODEC_ID_VORBIS, AV_CODEC_ID_SPEEX,
        AV_CODEC_ID_PCM_ALAW, AV_CODEC_ID_PCM_MULAW, AV_CODEC_ID_ADPCM_G722, AV_CODEC_ID_AMR_NB}) {
    EXPECT_FALSE(network.refusal_of_codec(codec)) << avcodec_get_name(codec);
  }
  for (const AVCodecID codec : {AV_CODEC_ID_INDEO3, AV_CODEC_ID_ANSI, AV_CODEC_ID_SMACKVIDEO}) {
    EXPECT_TRUE(network.refusal_of_codec(codec)) << avcodec_get_name(codec);
    EXPECT_FALSE(InputAccess(input_of("/srv/x")).refusal_of_codec(codec));
  }
  EXPECT_EQ(network.refusal_of_codec(AV_CODEC_ID_INDEO3),
            "needs the decoder indeo3, which input.decoders does not allow for an input from the "
            "network; input.decoders: [default, indeo3] allows it");
  EXPECT_FALSE(network.refusal_of_codec(AV_CODEC_ID_NONE));

  InputOptions file = input_of("/srv/x");
  file.decoders = {"h264"};
  EXPECT_FALSE(InputAccess(file).refusal_of_codec(AV_CODEC_ID_H264));
  EXPECT_TRUE(InputAccess(file).refusal_of_codec(AV_CODEC_ID_HEVC));
}

}  // namespace
}  // namespace framelane
