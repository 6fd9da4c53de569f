// Longer than 400 lines: each key of a file that is right has its test, most of them of a few
// lines.
#include "config/config.hpp"

#include <gmock/gmock.h>

#include "pipeline/base/redact.hpp"
#include "tests/config/source_root.hpp"
#include "tests/config/support.hpp"

namespace framelane {
namespace {

using namespace std::chrono_literals;
using test::load;
using test::load_feed;
using test::with_environment;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> encode_names(const FeedOptions& feed) {
  std::vector<std::string> names;
  for (const EncodeOptions& encode : feed.encodes) names.push_back(encode.name);
  return names;
}

std::vector<std::string> output_names(const FeedOptions& feed) {
  std::vector<std::string> names;
  for (const OutputOptions& output : feed.outputs) names.push_back(output.name);
  return names;
}

// The example that the public contract gives: cameras that are recorded and transcoded, a raw feed.
constexpr std::string_view kContractExample = R"(
log: {level: info, format: text}
admin: {listen: "127.0.0.1:9853"}
device: auto
defaults:
  ring: 8
  lanes: 3
  input:
    timeout: 10s
    reconnect: {first: 1s, max: 60s}
    options: {rtsp_transport: tcp}
  encodes:
    main: {video: copy, audio: copy}
    live:
      convert: {format: auto, matrix: auto, range: limited, siting: auto}
      video:
        codec:
          - {name: h264_nvenc, options: {preset: p4}}
          - {name: libx264, options: {preset: veryfast}}
        bitrate: 2M
        gop: 2s
      audio: none
  outputs:
    record: {from: main, url: "/srv/rec/${feed}/%Y-%m-%d/%H%M%S.mp4", segment: 1m, keep: {age: 7d, size: 80G, min_free: 5%}}
    hls: {from: live, url: "/var/lib/framelane/${feed}/index.m3u8", options: {hls_time: 2}}
profiles:
  sub: {outputs: {record: null}}
feeds:
  gate:
    input: {url: "rtsp://viewer:${PASSWORD}@10.0.0.4/stream1"}
  gate-sub:
    profile: sub
    input: {url: "rtsp://viewer:${PASSWORD}@10.0.0.4/stream2"}
  sdi1:
    input: {url: /run/sdi1.fifo, format: rawvideo, pixel_format: bgra, size: 3840x2160, rate: 60000/1001,
            pitch: 15360, timestamps: arrival, color: {matrix: rgb, range: full}, pace: asap}
    on_full: drop
    encodes: {main: null}
    outputs: {record: null}
)";

class ContractExampleTest : public ::testing::Test {
 protected:
  const Config config_ = load(kContractExample, with_environment({{"PASSWORD", "p@ss/word"}}));
};

TEST_F(ContractExampleTest, FeedsAreInTheOrderOfTheFile) {
  ASSERT_EQ(config_.feeds.size(), 3U);
  EXPECT_EQ(config_.feeds[0].name, "gate");
  EXPECT_EQ(config_.feeds[1].name, "gate-sub");
  EXPECT_EQ(config_.feeds[2].name, "sdi1");
}

TEST_F(ContractExampleTest, CameraTakesEverythingFromTheDefaults) {
  const FeedOptions& feed = config_.feeds.at(0);
  EXPECT_EQ(feed.input.url, "rtsp://viewer:p%40ss%2Fword@10.0.0.4/stream1");
  EXPECT_EQ(feed.input.timeout, 10s);
  EXPECT_EQ(feed.input.reconnect.first, 1s);
  EXPECT_EQ(feed.input.reconnect.max, 60s);
  EXPECT_FALSE(feed.input.raw);
  EXPECT_THAT(encode_names(feed), ElementsAre("main", "live"));
  EXPECT_THAT(output_names(feed), ElementsAre("record", "hls"));
}

TEST_F(ContractExampleTest, EncodesAreReadCompletely) {
  const FeedOptions& feed = config_.feeds.at(0);
  EXPECT_TRUE(feed.encodes.at(0).copy_video);
  EXPECT_TRUE(feed.encodes.at(0).copy_audio);
  EXPECT_THAT(feed.encodes.at(0).codecs, IsEmpty());

  const EncodeOptions& live = feed.encodes.at(1);
  EXPECT_FALSE(live.copy_video);
  EXPECT_FALSE(live.copy_audio);
  ASSERT_EQ(live.codecs.size(), 2U);
  EXPECT_EQ(live.codecs[0].name, "h264_nvenc");
  EXPECT_EQ(live.codecs[1].name, "libx264");
  ASSERT_EQ(live.codecs[1].options.size(), 1U);
  EXPECT_EQ(live.codecs[1].options[0].key, "preset");
  EXPECT_EQ(live.codecs[1].options[0].value, "veryfast");
  EXPECT_EQ(live.bitrate, 2'000'000);
  EXPECT_EQ(live.gop, std::chrono::microseconds(2s));
  EXPECT_EQ(live.format, std::nullopt);
  EXPECT_EQ(live.color.matrix, std::nullopt);
  EXPECT_EQ(live.color.range, Range::kLimited);
}

TEST_F(ContractExampleTest, OutputsAreReadCompletely) {
  const FeedOptions& feed = config_.feeds.at(0);
  const OutputOptions& record = feed.outputs.at(0);
  EXPECT_EQ(record.from, "main");
  EXPECT_EQ(record.url, "/srv/rec/gate/%Y-%m-%d/%H%M%S.mp4");
  ASSERT_TRUE(record.segment);
  EXPECT_EQ(record.segment->length, 1min);
  EXPECT_EQ(record.segment->keep_age, 24h * 7);
  EXPECT_EQ(record.segment->keep_bytes, 80'000'000'000);
  EXPECT_EQ(record.segment->keep_free, (DiskShare{.bytes = 0, .part = 0.05}));

  const OutputOptions& hls = feed.outputs.at(1);
  EXPECT_EQ(hls.from, "live");
  EXPECT_FALSE(hls.segment);
  ASSERT_EQ(hls.options.size(), 1U);
  EXPECT_EQ(hls.options[0].key, "hls_time");
  EXPECT_EQ(hls.options[0].value, "2");
  EXPECT_FALSE(hls.options[0].inherited);
}

TEST_F(ContractExampleTest, RawFeedIsReadCompletely) {
  const FeedOptions& feed = config_.feeds.at(2);
  EXPECT_EQ(feed.on_full, OnFull::kDrop);
  EXPECT_THAT(encode_names(feed), ElementsAre("live"));
  EXPECT_THAT(output_names(feed), ElementsAre("hls"));
  EXPECT_EQ(feed.input.color.matrix, Matrix::kRgb);
  EXPECT_EQ(feed.input.color.range, Range::kFull);
  ASSERT_TRUE(feed.input.raw);
  EXPECT_EQ(feed.input.raw->pixel_format, "bgra");
  EXPECT_EQ(feed.input.raw->width, 3840);
  EXPECT_EQ(feed.input.raw->height, 2160);
  EXPECT_EQ(feed.input.raw->rate, (Rational{60000, 1001}));
  EXPECT_EQ(feed.input.raw->pitch, 15360);
  EXPECT_EQ(feed.input.raw->timestamps, RawVideoOptions::Timestamps::kArrival);
}

TEST_F(ContractExampleTest, ProfileRemovesWhatTheDefaultsGive) {
  EXPECT_THAT(output_names(config_.feeds.at(1)), ElementsAre("hls"));
}

TEST(ConfigTest, ShippedExampleLoadsWithoutItsEnvironment) {
  LoadOptions options = with_environment({});
  options.require_environment = false;
  const auto path = test::source_root() / "config" / "framelane.example.yaml";
  const LoadResult result = load_config_file(path.string(), options);
  ASSERT_TRUE(std::holds_alternative<Config>(result))
      << to_string(std::get<std::vector<Problem>>(result).front());
  EXPECT_EQ(std::get<Config>(result).feeds.size(), 5U);
}

TEST(ConfigTest, SoundIsLeftOutCopiedOrTranscoded) {
  const Config config = load(R"(
feeds:
  a:
    input: {url: a.mp4}
    encodes:
      none: {audio: none}
      copy: {audio: copy}
      usual: {audio: {bitrate: 48k}}
      list: {audio: {codec: [libopus, {name: aac, options: {aac_coder: fast}}]}}
)");
  const std::vector<EncodeOptions>& encodes = config.feeds.at(0).encodes;
  ASSERT_EQ(encodes.size(), 4U);
  EXPECT_FALSE(encodes[0].wants_audio());
  EXPECT_TRUE(encodes[1].copy_audio);
  EXPECT_FALSE(encodes[1].transcodes_audio());
  ASSERT_EQ(encodes[2].audio_codecs.size(), 1U);
  EXPECT_EQ(encodes[2].audio_codecs[0].name, "aac");
  EXPECT_EQ(encodes[2].audio_bitrate, 48'000);
  EXPECT_FALSE(encodes[2].copy_audio);
  ASSERT_EQ(encodes[3].audio_codecs.size(), 2U);
  EXPECT_EQ(encodes[3].audio_codecs[1].options.at(0).key, "aac_coder");
}

TEST(ConfigTest, TopLevelKeysAreOptional) {
  const Config config = load("feeds: {a: {input: {url: a.mp4}}}");
  EXPECT_EQ(config.log.level, LogLevel::kInfo);
  EXPECT_EQ(config.log.format, LogFormat::kPlain);
  EXPECT_EQ(config.admin.listen, "127.0.0.1:9853");
  EXPECT_EQ(config.device.kind, DeviceChoice::Kind::kAuto);
  EXPECT_FALSE(config.watchdog.max_abandoned);
}

TEST(ConfigTest, TopLevelKeysAreRead) {
  const Config config = load(R"(
log: {level: warn, format: json}
admin: {listen: "unix:/run/framelane/admin.sock"}
watchdog: {max_abandoned: 0}
device: cuda:3
feeds: {a: {input: {url: a.mp4}}}
)");
  EXPECT_EQ(config.log.level, LogLevel::kWarn);
  EXPECT_EQ(config.log.format, LogFormat::kJson);
  EXPECT_EQ(config.admin.listen, "unix:/run/framelane/admin.sock");
  EXPECT_EQ(config.device.kind, DeviceChoice::Kind::kCuda);
  EXPECT_EQ(config.device.gpu, 3);
  EXPECT_EQ(config.watchdog.max_abandoned, 0);
}

TEST(ConfigTest, FeedWithoutEncodesHasMainWithLibx264) {
  const FeedOptions feed = load_feed("feeds: {a: {input: {url: a.mp4}}}");
  ASSERT_EQ(feed.encodes.size(), 1U);
  EXPECT_EQ(feed.encodes[0].name, "main");
  ASSERT_EQ(feed.encodes[0].codecs.size(), 1U);
  EXPECT_EQ(feed.encodes[0].codecs[0].name, "libx264");
  ASSERT_EQ(feed.encodes[0].codecs[0].options.size(), 1U);
  EXPECT_EQ(feed.encodes[0].codecs[0].options[0].value, "veryfast");
  EXPECT_THAT(feed.outputs, IsEmpty());
}

TEST(ConfigTest, OutputWithoutFromTakesTheFirstEncode) {
  const FeedOptions feed = load_feed(R"(
feeds:
  a:
    input: {url: a.mp4}
    encodes: {small: {video: {bitrate: 300k}}, large: {video: copy}}
    outputs: {file: {url: out.mkv}}
)");
  ASSERT_EQ(feed.outputs.size(), 1U);
  EXPECT_EQ(feed.outputs[0].from, "small");
}

std::vector<std::string> codec_names(std::string_view codec) {
  std::vector<std::string> names;
  const FeedOptions feed = load_feed(
      "feeds: {a: {input: {url: x}, encodes: {m: {video: {codec: " + std::string(codec) + "}}}}}");
  for (const EncodeOptions& encode : feed.encodes) {
    for (const CodecCandidate& candidate : encode.codecs) names.push_back(candidate.name);
  }
  return names;
}

TEST(ConfigTest, CodecIsANameAMapOrAList) {
  EXPECT_THAT(codec_names("libx265"), ElementsAre("libx265"));
  EXPECT_THAT(codec_names("{name: mjpeg, options: {qmin: 3}}"), ElementsAre("mjpeg"));
  EXPECT_THAT(codec_names("[h264_nvenc, {name: libx264}]"), ElementsAre("h264_nvenc", "libx264"));
}

TEST(ConfigTest, ConvertNamesTheTarget) {
  const FeedOptions feed = load_feed(R"(
feeds:
  a:
    input: {url: a.mp4}
    encodes: {m: {convert: {format: nv12, matrix: bt601, range: full, siting: center}}}
)");
  const EncodeOptions& encode = feed.encodes.at(0);
  EXPECT_EQ(encode.format, PixelFormat::kNv12);
  EXPECT_EQ(encode.color.matrix, Matrix::kBt601);
  EXPECT_EQ(encode.color.range, Range::kFull);
  EXPECT_EQ(encode.color.siting, Siting::kCenter);
}

TEST(ConfigTest, TheDecoderIsAutoUnlessItIsNamed) {
  using Decoder = InputOptions::DecoderKind;
  EXPECT_EQ(load_feed("feeds: {a: {input: {url: a.mp4}}}\n").input.decoder, Decoder::kAuto);
  EXPECT_EQ(load_feed("feeds: {a: {input: {url: a.mp4, decoder: nvdec}}}\n").input.decoder,
            Decoder::kNvdec);
}

TEST(ConfigTest, AFeedMayNameItsDevice) {
  const Config config = load(R"(
device: cpu
profiles: {gpu: {device: cuda}}
feeds:
  a: {input: {url: a.mp4}}
  b: {input: {url: b.mp4}, profile: gpu}
  c: {input: {url: c.mp4}, profile: gpu, device: "cuda:1"}
)");
  EXPECT_EQ(config.device.kind, DeviceChoice::Kind::kCpu);
  EXPECT_FALSE(config.feeds.at(0).device.has_value());
  EXPECT_EQ(config.feeds.at(1).device.value().kind, DeviceChoice::Kind::kCuda);
  EXPECT_FALSE(config.feeds.at(1).device.value().gpu.has_value());
  EXPECT_EQ(config.feeds.at(2).device.value().gpu, 1);
}

TEST(ConfigTest, InputAndOutputKeysAreRead) {
  const FeedOptions feed = load_feed(R"(
feeds:
  a:
    lanes: 2
    ring: 4
    slices: 5
    on_full: block
    on_gap: {split_after: 1500ms}
    analyse: true
    input: {url: a.mp4, format: mp4, decoder: software, loop: true, pace: realtime, timeout: 1500ms}
    outputs:
      o: {url: "rtmp://host/app/key", format: flv, timeout: 3s, queue: 64, reconnect: {max: 5s}}
)");
  EXPECT_EQ(feed.lanes, 2);
  EXPECT_EQ(feed.ring, 4);
  EXPECT_EQ(feed.slices, 5);
  EXPECT_EQ(feed.on_full, OnFull::kBlock);
  EXPECT_EQ(feed.split_after, 1500ms);
  EXPECT_TRUE(feed.analyse);
  EXPECT_EQ(feed.input.format, "mp4");
  EXPECT_EQ(feed.input.decoder, InputOptions::DecoderKind::kSoftware);
  EXPECT_TRUE(feed.input.loop);
  EXPECT_EQ(feed.input.pace, InputOptions::Pace::kRealtime);
  EXPECT_EQ(feed.input.timeout, 1500ms);
  const OutputOptions& output = feed.outputs.at(0);
  EXPECT_EQ(output.format, "flv");
  EXPECT_EQ(output.timeout, 3s);
  EXPECT_EQ(output.queue, 64);
  EXPECT_EQ(output.reconnect.max, 5s);
}

TEST(ConfigTest, WhatAnInputMayDoIsRead) {
  const InputOptions input = load_feed(R"(
feeds:
  a:
    input:
      url: "http://h/live.m3u8"
      protocols: [default, rtsp]
      formats: hls
      decoders: [h264, aac]
      addresses: [link_local, loopback]
      limits: {pixels: 1920x1088, streams: 4, probe_size: 2M, playlist_size: 100k}
)")
                                 .input;
  EXPECT_THAT(input.protocols, ElementsAre("default", "rtsp"));
  EXPECT_THAT(input.formats, ElementsAre("hls"));
  EXPECT_THAT(input.decoders, ElementsAre("h264", "aac"));
  EXPECT_TRUE(input.reach_loopback);
  EXPECT_TRUE(input.reach_link_local);
  EXPECT_EQ(input.limits.pixels, 1920 * 1088);
  EXPECT_EQ(input.limits.streams, 4);
  EXPECT_EQ(input.limits.probe_size, 2'000'000);
  EXPECT_EQ(input.limits.playlist_size, 100'000);
}

TEST(ConfigTest, ProblemsDoNotShowUrlPasswords) {
  for (const std::string& line : test::problems_of(R"(
feeds:
  a: rtsp://viewer:S3cretS3cretS3cretS3cretS3cretS3cret@10.0.0.4
  b: {input: {url: x, rtsp://viewer:S3cret77@h.example/x: 1}}
  c: {input: {url: x, pace: "rtsp://viewer:S3cret77@h.example/x"}}
)")) {
    EXPECT_THAT(line, ::testing::Not(::testing::HasSubstr("S3cret")));
  }
}

TEST(ConfigTest, FeedsOfOneFolderNeedNamesOfTheirOwnAlone) {
  // Without `keep` nothing is deleted, so the names may be alike.
  EXPECT_EQ(load(R"(
defaults:
  outputs:
    date: {url: "/r/${feed}%Y%m%d-%H%M%S.mp4", segment: 1m, keep: {age: 1d}}
    seconds: {url: "/s/${feed}%s.mp4", segment: 1m}
feeds: {cam: {input: {url: x}}, cam1: {input: {url: y}}}
)")
                .feeds.size(),
            2u);
}

TEST(ConfigTest, FreeSpaceMayBeGivenInBytes) {
  const Config config = load(
      "feeds: {a: {input: {url: x}, outputs: {o: {url: 'x%s.ts', segment: 1m, "
      "keep: {min_free: 5G}}}}}\n");
  EXPECT_EQ(config.feeds.at(0).outputs.at(0).segment->keep_free,
            (DiskShare{.bytes = 5'000'000'000, .part = 0}));
}

TEST(ConfigTest, UrlPasswordsAreRegisteredAsSecrets) {
  load(
      "feeds: {a: {input: {url: 'rtsp://u:Registered-1@h/'},"
      " outputs: {o: {url: 'rtmp://u:Registered-2@h/'}}}}");
  EXPECT_EQ(redact("said Registered-1 and Registered-2"), "said *** and ***");
}

TEST(ConfigTest, SecretsInOptionsOfInputOutputAndCodecAreRegistered) {
  load(R"(
feeds:
  a:
    input: {url: x, options: {headers: "X-Camera-Key: ibex-71"}}
    encodes: {m: {video: {codec: {name: libx264, options: {stats: "http://u:tapir-72@h/"}}}}}
    outputs: {o: {url: "srt://h:9000", format: mpegts, options: {streamid: publish/quoll-73}}}
)");
  EXPECT_EQ(redact("said ibex-71, tapir-72 and publish/quoll-73"), "said ***, *** and ***");
}

TEST(ConfigTest, AliasesStandForTheValuesTheyName) {
  const Config config = load(R"(
feeds:
  a: {input: {url: a.mp4, reconnect: &slow {first: 10s, max: 20s}}}
  b: {input: {url: b.mp4, reconnect: *slow}}
)");
  EXPECT_EQ(config.feeds.at(1).input.reconnect.first, 10s);
}

}  // namespace
}  // namespace framelane
