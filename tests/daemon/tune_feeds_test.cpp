// Not built for ThreadSanitizer: what it tests has one thread.
#include "daemon/tune_feeds.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "config/problems.hpp"
#include "tests/config/support.hpp"

namespace framelane {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TunedFeed feed_of(const std::string& yaml) {
  return tuned_feed(test::load_feed("feeds: {a: " + yaml + "}\n"), {640, 360, {25, 1}});
}

TEST(TuneFeedsTest, RawVideoSaysWhatItIs) {
  const TunedFeed feed = feed_of(
      "{input: {url: x, format: rawvideo, pixel_format: bgra, size: 320x180, "
      "rate: 60000/1001}, encodes: {m: {video: {codec: libx264}}}}");
  EXPECT_THAT(feed.left_out, IsEmpty());
  EXPECT_THAT(feed.assumed, IsEmpty());
  ASSERT_EQ(feed.conversions.size(), 1u);
  const Conversion& convert = feed.conversions[0];
  EXPECT_EQ(convert.width, 320);
  EXPECT_EQ(convert.height, 180);
  EXPECT_EQ(convert.source, PixelFormat::kBgra);
  EXPECT_EQ(convert.target, PixelFormat::kNv12);  // what libx264 gets of RGB
  EXPECT_EQ(convert.target_color.range, Range::kLimited);
  EXPECT_EQ(convert.scaling, std::nullopt);
  EXPECT_EQ(feed.rate, (Rational{60000, 1001}));
}

TunedFeed feed_without_variables(const std::string& size, const std::string& rate,
                                 const std::string& format) {
  LoadOptions options = test::with_environment({});
  options.require_environment = false;
  const LoadResult loaded =
      load_config_text("feeds: {a: {input: {url: x, format: rawvideo, pixel_format: " + format +
                           ", size: " + size + ", rate: " + rate + "}}}\n",
                       "f.yaml", options);
  return tuned_feed(std::get<Config>(loaded).feeds.at(0), {640, 360, {50, 1}});
}

TEST(TuneFeedsTest, UnsetVariablesAreTakenForTheOptionsAndThatIsSaid) {
  const TunedFeed size = feed_without_variables("\"${S}\"", "30", "bgra");
  EXPECT_EQ(size.assumed, "its size is not known here and taken for --size");
  EXPECT_EQ(size.conversions.at(0).width, 640);
  EXPECT_EQ(size.rate, (Rational{30, 1}));
  const TunedFeed rate = feed_without_variables("32x18", "\"${R}\"", "bgra");
  EXPECT_EQ(rate.assumed, "its rate is not known here and taken for --rate");
  EXPECT_EQ(rate.conversions.at(0).width, 32);
  EXPECT_EQ(rate.rate, (Rational{50, 1}));
  const TunedFeed both = feed_without_variables("\"${S}\"", "\"${R}\"", "bgra");
  EXPECT_EQ(both.assumed, "its size and rate are not known here and taken for --size and --rate");
}

TEST(TuneFeedsTest, AFormatThatIsNotKnownIsNotGuessed) {
  EXPECT_EQ(feed_without_variables("32x18", "30", "\"${F}\"").left_out,
            "its pixel format is not known here");
}

TEST(TuneFeedsTest, AStreamIsTakenForWhatIsConverted) {
  const TunedFeed limited = feed_of(
      "{input: {url: \"rtsp://h/s\"}, encodes: {m: {convert: {range: limited}, "
      "video: {codec: libx264}}}}");
  ASSERT_EQ(limited.conversions.size(), 1u);
  EXPECT_EQ(limited.conversions[0].source, PixelFormat::kI420);
  EXPECT_EQ(limited.conversions[0].source_color.range, Range::kFull);
  EXPECT_EQ(limited.conversions[0].width, 640);
  EXPECT_EQ(limited.rate, (Rational{25, 1}));
  EXPECT_THAT(limited.assumed, HasSubstr("taken for 640x360, full range"));
  const TunedFeed nv12 = feed_of(
      "{input: {url: \"rtsp://h/s\"}, encodes: {m: {convert: {format: nv12}, "
      "video: {codec: libx264}}}}");
  ASSERT_EQ(nv12.conversions.size(), 1u);
  EXPECT_EQ(nv12.conversions[0].source_color.range, Range::kLimited);
  EXPECT_EQ(nv12.conversions[0].target, PixelFormat::kNv12);
}

TEST(TuneFeedsTest, EveryEncodeThatConvertsCounts) {
  EXPECT_EQ(feed_of("{input: {url: \"rtsp://h/s\"}, encodes: {"
                    "a: {video: copy}, "
                    "b: {convert: {format: nv12}, video: {codec: libx264}}, "
                    "c: {convert: {format: nv12}, video: {codec: libx264}}, "
                    "d: {video: {codec: libx264}}}}")
                .conversions.size(),
            2u);
}

TEST(TuneFeedsTest, WhatConvertsNothingIsLeftOut) {
  EXPECT_THAT(feed_of("{input: {url: \"rtsp://h/s\"}, encodes: {m: {video: copy}}}").left_out,
              HasSubstr("converts nothing"));
  EXPECT_THAT(
      feed_of("{input: {url: \"rtsp://h/s\"}, encodes: {m: {video: {codec: libx264}}}}").left_out,
      HasSubstr("converts nothing"));
}

TEST(TuneFeedsTest, EachRenditionIsAConversionOfTheOneSource) {
  const TunedFeed feed = feed_of(
      "{input: {url: \"rtsp://h/s\"}, encodes: {"
      "a: {video: {codec: libx264}}, "
      "b: {video: {codec: libx264}, convert: {size: 50%, filter: area}}, "
      "c: {video: {codec: libx264}, convert: {crop: 320x180+16+8, rotate: 90, size: 160x200, "
      "fit: contain, background: \"#102030\", filter: spline36}}}}");
  EXPECT_THAT(feed.left_out, IsEmpty());
  ASSERT_EQ(feed.conversions.size(), 2u);  // the first is a bypass
  for (const Conversion& convert : feed.conversions) {
    EXPECT_EQ(convert.width, 640);
    EXPECT_EQ(convert.source_color.range, Range::kLimited);
  }
  EXPECT_EQ(feed.conversions[0].scaling,
            (Scaling{{0, 0, 640, 360}, {320, 180}, {0, 0, 320, 180}, ScaleFilter::kArea}));
  const Scaling& turned = feed.conversions[1].scaling.value();
  EXPECT_EQ(turned.crop, (Rect{16, 8, 320, 180}));
  EXPECT_EQ(turned.target, (PictureSize{160, 200}));
  EXPECT_LT(turned.place.width, 160);
  EXPECT_TRUE(turned.orientation.transposed);
  EXPECT_EQ(turned.filter, ScaleFilter::kSpline36);
}

TEST(TuneFeedsTest, AnOverlayMakesAPictureOfItsOwn) {
  const TunedFeed feed = feed_of(
      "{input: {url: \"rtsp://h/s\"}, encodes: {"
      "m: {video: {codec: libx264}, overlay: {text: \"%T\"}}}}");
  EXPECT_THAT(feed.left_out, IsEmpty());
  ASSERT_EQ(feed.conversions.size(), 1u);
  EXPECT_TRUE(feed.conversions[0].overlaid);
  EXPECT_TRUE(is_identity(feed.conversions[0]));
}

/// The advice for a feed of this source with one encode of this size. `stated`: the size of streams
/// is.
std::string advice_of(const std::string& input, const std::string& size, bool stated) {
  const StreamShape streams{960, 540, {25, 1}, stated};
  const FeedOptions options = test::load_feed(
      "feeds: {a: {input: {" + input +
      "}, encodes: {m: {video: {codec: libx264}, convert: {size: " + size + "}}}}}\n");
  return tuned_feed(options, streams).advice;
}

TEST(TuneFeedsTest, ALiveSourceOfThreeTimesTheSizeIsNamedWhereThatIsKnown) {
  const std::string camera = "url: \"rtsp://h/s\"";
  EXPECT_THAT(advice_of(camera, "320x180", true), HasSubstr("decodes 960x540, and its largest"));
  EXPECT_THAT(advice_of(camera, "480x270", true), IsEmpty());
  EXPECT_THAT(advice_of(camera, "320x180", false), IsEmpty());
  EXPECT_THAT(advice_of(camera, "25%", false), HasSubstr("input.url"));
  EXPECT_THAT(advice_of("url: x.mp4", "25%", true), IsEmpty());
  const std::string raw =
      "url: \"shm:/run/x\", format: rawvideo, pixel_format: bgra, size: 640x360, rate: 25";
  EXPECT_THAT(advice_of(raw, "160x90", false), HasSubstr("reads 640x360, and its largest"));
  EXPECT_THAT(advice_of(raw, "320x180", false), IsEmpty());
}

TEST(TuneFeedsTest, WhatCannotRunSaysWhy) {
  EXPECT_THAT(
      feed_of("{input: {url: x, format: rawvideo, pixel_format: bgra, size: 320x180, rate: 30}, "
              "encodes: {m: {video: {codec: h264_nvenc}}}}")
          .left_out,
      HasSubstr("h264_nvenc"));
}

Node tree_of(const std::string& yaml) {
  Problems problems("");
  return parse_yaml(yaml, problems);
}

TEST(OwnSettingsTest, WhatAFeedOrItsProfileSetsIsItsOwn) {
  const Node root = tree_of(
      "defaults: {lanes: 5, ring: 16, slices: 2}\n"
      "profiles: {large: {lanes: 6, slices: auto}}\n"
      "feeds:\n"
      "  a: {input: {url: x}}\n"
      "  b: {profile: large, ring: 8}\n"
      "  c: {profile: large, slices: 1}\n"
      "  d: {lanes: null}\n");
  EXPECT_THAT(own_settings(root, "a"), IsEmpty());
  EXPECT_THAT(own_settings(root, "b"), ElementsAre("lanes", "ring", "slices"));
  EXPECT_THAT(own_settings(root, "c"), ElementsAre("lanes", "slices"));
  EXPECT_THAT(own_settings(root, "d"), ElementsAre("lanes"));
  EXPECT_THAT(own_settings(root, "e"), IsEmpty());
}

TEST(TuneFeedsTest, TheTextHasBothKinds) {
  const std::string yaml =
      "device: cuda:1\n"
      "defaults: {lanes: 5, slices: 2}\n"
      "feeds:\n"
      "  a: {ring: 9, input: {url: x, format: rawvideo, pixel_format: bgra, size: 32x18, rate: "
      "30}, encodes: {l: {video: {codec: libx264}}, "
      "s: {video: {codec: libx264}, convert: {size: 16x10, flip: horizontal}}}}\n"
      "  b: {input: {url: y}, encodes: {m: {video: copy}}}\n";
  const auto json = nlohmann::json::parse(tuned_feeds_json(test::load(yaml), tree_of(yaml), {}));
  EXPECT_EQ(json.at("device"), "cuda:1");
  ASSERT_EQ(json.at("feeds").size(), 1u);
  EXPECT_EQ(json["feeds"][0].at("name"), "a");
  EXPECT_EQ(json["feeds"][0].at("lanes"), 5);
  EXPECT_EQ(json["feeds"][0].at("ring"), 9);
  EXPECT_EQ(json["feeds"][0].at("slices"), 2);
  EXPECT_EQ(json["feeds"][0].at("own"), (std::vector<std::string>{"ring"}));
  const auto& conversions = json["feeds"][0].at("conversions");
  ASSERT_EQ(conversions.size(), 2u);
  EXPECT_EQ(conversions[0].at("target"), "nv12");
  EXPECT_TRUE(conversions[0].at("scaling").is_null());
  const auto& scaling = conversions[1].at("scaling");
  EXPECT_EQ(scaling.at("crop"), (std::vector<int>{0, 0, 32, 18}));
  EXPECT_EQ(scaling.at("target"), (std::vector<int>{16, 10}));
  EXPECT_EQ(scaling.at("place"), (std::vector<int>{0, 0, 16, 10}));
  EXPECT_EQ(scaling.at("filter"), "bicubic");
  EXPECT_EQ(scaling.at("mirrored"), true);
  ASSERT_EQ(json.at("left_out").size(), 1u);
  EXPECT_THAT(json["left_out"][0].get<std::string>(), HasSubstr("b: converts nothing"));
}

}  // namespace
}  // namespace framelane
