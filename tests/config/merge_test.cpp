#include <gmock/gmock.h>

#include "tests/config/support.hpp"

namespace framelane {
namespace {

using namespace std::chrono_literals;
using test::load;
using test::load_feed;
using test::problems_of;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(MergeTest, FeedOverridesProfileOverridesDefaults) {
  const FeedOptions feed = load_feed(R"(
defaults: {ring: 2, lanes: 2, on_full: drop}
profiles: {p: {ring: 3, lanes: 3}}
feeds: {a: {profile: p, ring: 4, input: {url: x}}}
)");
  EXPECT_EQ(feed.ring, 4);
  EXPECT_EQ(feed.lanes, 3);
  EXPECT_EQ(feed.on_full, OnFull::kDrop);
}

TEST(MergeTest, AFeedMayTakeBackHowItsRecordingsEnd) {
  EXPECT_EQ(load_feed("feeds: {a: {input: {url: x}}}").split_after, 5s);
  const std::string defaults = "defaults: {on_gap: {split_after: 1m}}\n";
  EXPECT_EQ(load_feed(defaults + "feeds: {a: {input: {url: x}}}").split_after, 1min);
  EXPECT_EQ(load_feed(defaults + "feeds: {a: {on_gap: {split_after: never}, input: {url: x}}}")
                .split_after,
            std::nullopt);
}

TEST(MergeTest, MapsMergeByKey) {
  const FeedOptions feed = load_feed(R"(
defaults: {input: {timeout: 3s, reconnect: {first: 2s, max: 9s}}}
feeds: {a: {input: {url: x, reconnect: {max: 5s}}}}
)");
  EXPECT_EQ(feed.input.timeout, 3s);
  EXPECT_EQ(feed.input.reconnect.first, 2s);
  EXPECT_EQ(feed.input.reconnect.max, 5s);
}

TEST(MergeTest, TheFilesLimitsAreThoseOfEveryInputThatHasNoneOfItsOwn) {
  const Config config = load(R"(
limits: {pixels: 640x480, streams: 4, playlist_size: 100k, protocols: [default, rtsp]}
defaults: {input: {limits: {streams: 8}}}
profiles: {wide: {input: {limits: {pixels: 1920x1080}}}}
feeds:
  a: {input: {url: "http://h/a"}}
  b: {profile: wide, input: {url: "http://h/b", protocols: all, limits: {playlist_size: null}}}
)");
  const InputOptions& a = config.feeds[0].input;
  EXPECT_EQ(a.limits.pixels, 640 * 480);
  EXPECT_EQ(a.limits.streams, 8);
  EXPECT_EQ(a.limits.playlist_size, 100'000);
  EXPECT_THAT(a.protocols, ElementsAre("default", "rtsp"));
  const InputOptions& b = config.feeds[1].input;
  EXPECT_EQ(b.limits.pixels, 1920 * 1080);
  EXPECT_EQ(b.limits.playlist_size, InputLimits().playlist_size);
  EXPECT_THAT(b.protocols, ElementsAre("all"));
  const FeedResult again = reread_feed(*config.tree, "a", config.files);
  EXPECT_EQ(std::get<FeedOptions>(again).input.limits.pixels, 640 * 480);
}

TEST(MergeTest, ListsAreReplaced) {
  const FeedOptions feed = load_feed(R"(
defaults: {encodes: {m: {video: {codec: [ffv1, mjpeg], gop: 1s}}}}
feeds: {a: {input: {url: x}, encodes: {m: {video: {codec: [png]}}}}}
)");
  ASSERT_EQ(feed.encodes.at(0).codecs.size(), 1U);
  EXPECT_EQ(feed.encodes.at(0).codecs[0].name, "png");
  EXPECT_EQ(feed.encodes.at(0).gop, std::chrono::microseconds(1s));
}

TEST(MergeTest, CodecsOfOneMapDoNotPassOptionsToAnother) {
  const FeedOptions feed = load_feed(R"(
defaults: {encodes: {m: {video: {codec: {name: libx264, options: {preset: slow}}}}}}
feeds: {a: {input: {url: x}, encodes: {m: {video: {codec: {name: mjpeg}}}}}}
)");
  EXPECT_EQ(feed.encodes.at(0).codecs.at(0).name, "mjpeg");
  EXPECT_THAT(feed.encodes.at(0).codecs.at(0).options, IsEmpty());
}

TEST(MergeTest, AnEncodeOrOutputCalledCodecMergesLikeAnyOther) {
  const FeedOptions feed = load_feed(R"(
defaults:
  encodes: {codec: {video: {bitrate: 1M, gop: 1s}}}
  outputs: {codec: {url: a.mkv, timeout: 3s}}
feeds:
  a:
    input: {url: x}
    encodes: {codec: {video: {bitrate: 2M}}}
    outputs: {codec: {timeout: 4s}}
)");
  EXPECT_EQ(feed.encodes.at(0).bitrate, 2'000'000);
  EXPECT_EQ(feed.encodes.at(0).gop, std::chrono::microseconds(1s));
  EXPECT_EQ(feed.outputs.at(0).url, "a.mkv");
  EXPECT_EQ(feed.outputs.at(0).timeout, 4s);
}

TEST(MergeTest, ScalarReplacesMapAndMapReplacesScalar) {
  const Config config = load(R"(
defaults: {encodes: {m: {video: copy}, n: {video: {bitrate: 1M}}}}
feeds: {a: {input: {url: x}, encodes: {m: {video: {bitrate: 2M}}, n: {video: copy}}}}
)");
  const FeedOptions& feed = config.feeds.at(0);
  EXPECT_FALSE(feed.encodes.at(0).copy_video);
  EXPECT_EQ(feed.encodes.at(0).bitrate, 2'000'000);
  EXPECT_TRUE(feed.encodes.at(1).copy_video);
  EXPECT_EQ(feed.encodes.at(1).bitrate, std::nullopt);
}

TEST(MergeTest, NullBringsBackTheBuiltInValue) {
  const FeedOptions feed = load_feed(R"(
defaults: {ring: 2, input: {timeout: 3s}}
feeds: {a: {ring: null, input: {url: x, timeout: ~}}}
)");
  EXPECT_EQ(feed.ring, 8);
  EXPECT_EQ(feed.input.timeout, 10s);
}

TEST(MergeTest, RemovedOutputMayBeFromARemovedEncode) {
  const FeedOptions feed = load_feed(R"(
defaults:
  encodes: {main: {video: copy}, live: {audio: copy}}
  outputs: {record: {from: main, url: "/r/${feed}.mp4"}, hls: {from: live, url: "/h/${feed}.m3u8"}}
feeds: {a: {input: {url: x}, encodes: {main: null}, outputs: {record: null}}}
)");
  ASSERT_EQ(feed.outputs.size(), 1U);
  EXPECT_EQ(feed.outputs[0].name, "hls");
}

TEST(MergeTest, FeedRestoresWhatItsProfileRemoves) {
  const FeedOptions feed = load_feed(R"(
defaults: {outputs: {record: {url: r.mp4}}}
profiles: {p: {outputs: {record: null}}}
feeds: {a: {profile: p, input: {url: x}, outputs: {record: {url: other.mp4}}}}
)");
  EXPECT_EQ(feed.outputs.at(0).url, "other.mp4");
}

TEST(MergeTest, RemovingAllEncodesLeavesTheBuiltInOne) {
  const FeedOptions feed = load_feed(R"(
defaults: {encodes: {copied: {video: copy}}}
feeds: {a: {input: {url: x}, encodes: null}}
)");
  ASSERT_EQ(feed.encodes.size(), 1U);
  EXPECT_EQ(feed.encodes[0].name, "main");
}

TEST(MergeTest, OnlyInputOptionsFromTheDefaultsMayGoUnused) {
  const FeedOptions feed = load_feed(R"(
defaults: {input: {options: {rtsp_transport: tcp, threads: 1, probesize: 1000}}}
profiles: {p: {input: {options: {threads: 2}}}}
feeds: {f: {profile: p, input: {url: x, options: {probesize: 3000, fflags: nobuffer}}}}
)");
  std::vector<std::string> options;
  for (const AvOption& option : feed.input.options) {
    options.push_back(option.key + "=" + option.value + (option.inherited ? " inherited" : ""));
  }
  EXPECT_THAT(options, ElementsAre("rtsp_transport=tcp inherited", "threads=2", "probesize=3000",
                                   "fflags=nobuffer"));
}

TEST(MergeTest, WhatAnEncodeInheritsMayHaveNoEffectBesideItsOwnKeys) {
  const FeedOptions feed = load_feed(R"(
defaults:
  encodes:
    cut: {convert: {size: 640x480, fit: contain, background: "#102030", filter: area}}
    whole: {convert: {size: 640x480, fit: contain, filter: area}}
feeds:
  a:
    input: {url: x}
    encodes:
      cut: {convert: {fit: cover}}
      whole: {convert: {size: null, rate: 5}}
)");
  EXPECT_EQ(feed.encodes.at(0).picture.fit, Fit::kCover);
  EXPECT_FALSE(feed.encodes.at(1).picture.size);
}

TEST(MergeTest, AnOddSizeIsTakenWhereAnEncoderOrTheSourceMayTakeIt) {
  const FeedOptions feed = load_feed(R"(
feeds:
  a:
    input: {url: x}
    encodes:
      source: {convert: {size: 853x479}}
      full: {convert: {size: 853x479, format: yuv444p}}
      rows: {convert: {size: 854x479, format: yuv422p}}
      shape: {convert: {size: 854x-2, format: yuv420p}}
      other: {convert: {size: 853x479, format: yuv420p}, video: {codec: mpeg4}}
      list: {convert: {size: 853x479, format: yuv420p}, video: {codec: [libx264, mpeg4]}}
)");
  EXPECT_EQ(feed.encodes.size(), 6U);
}

TEST(MergeTest, ProblemInTheDefaultsIsReportedOnce) {
  EXPECT_THAT(problems_of(R"(defaults: {ring: none}
feeds:
  a: {input: {url: x}}
  b: {input: {url: y}}
)"),
              ElementsAre("f.yaml:1:18: defaults.ring: must be a whole number, from 1 to 256, not "
                          "\"none\""));
}

TEST(MergeTest, OverriddenProblemIsStillReported) {
  EXPECT_THAT(problems_of("defaults: {ring: none}\nfeeds: {a: {ring: 3, input: {url: x}}}\n"),
              ElementsAre("f.yaml:1:18: defaults.ring: must be a whole number, from 1 to 256, not "
                          "\"none\""));
}

TEST(MergeTest, ProblemInAnUnusedProfileIsReported) {
  EXPECT_THAT(problems_of("profiles: {p: {rnig: 2}}\nfeeds: {a: {input: {url: x}}}\n"),
              ElementsAre("f.yaml:1:16: profiles.p.rnig: is not a known key; did you mean "
                          "\"ring\"?"));
}

TEST(MergeTest, UnsetVariableThatIsOverriddenDoesNotMatter) {
  EXPECT_THAT(problems_of("defaults: {input: {url: '${UNSET}'}}\nfeeds: {a: {input: {url: x}}}\n"),
              IsEmpty());
}

}  // namespace
}  // namespace framelane
