#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "tests/config/wrong_config.hpp"

namespace framelane {
namespace {

/// A feed with the encodes x and y, and an output "o" with these keys.
std::string renditions_with(const std::string& output_keys, const std::string& encodes =
                                                                "x: {video: {gop: 2s}}, "
                                                                "y: {video: {gop: 2s}}") {
  return "feeds: {a: {input: {url: x}, encodes: {" + encodes + "}, outputs: {o: {" + output_keys +
         "}}}}\n";
}

const std::string kMaster = ", url: /srv/m.m3u8";
const std::string kBoth = "from: [x, y]" + kMaster;
const std::string kFmp4 = ", options: {hls_segment_type: fmp4}";

const std::vector<Wrong> kRenditions{
    {"ListOfNone",
     renditions_with("from: []" + kMaster),
     {"f.yaml:1:107: feeds.a.outputs.o.from: is a list, for renditions of one master playlist, "
      "with fewer than two encodes; add another one, or write from: x"}},
    {"ListOfOne",
     renditions_with("from: [y]" + kMaster),
     {"f.yaml:1:107: feeds.a.outputs.o.from: is a list, for renditions of one master playlist, "
      "with fewer than two encodes; add another one, or write from: y"}},
    {"RenditionOfNoEncode",
     renditions_with("from: [x, z]" + kMaster),
     {"f.yaml:1:111: feeds.a.outputs.o.from[1]: feed \"a\" has no encode \"z\"; it has: x, y"}},
    {"RenditionTwice",
     renditions_with("from: [x, y, x]" + kMaster),
     {"f.yaml:1:114: feeds.a.outputs.o.from[2]: names encode \"x\" again; remove one of the two"}},
    {"RenditionIsNoName",
     renditions_with("from: [x, {y: 1}]" + kMaster),
     {"f.yaml:1:111: feeds.a.outputs.o.from[1]: must be a name of at most 63 of a-z, 0-9, _ and -, "
      "beginning with a letter or digit, not a map"}},
    {"RenditionsWithoutUrl",
     renditions_with("from: [x, y]"),
     {"f.yaml:1:97: feeds.a.outputs.o.url: is missing; say where to write the master playlist, "
      "ending .m3u8"}},
    {"RenditionsInAFile",
     renditions_with("from: [x, y], url: /srv/m.mp4"),
     {"f.yaml:1:120: feeds.a.outputs.o.url: takes several encodes, which only an HLS playlist in a "
      "folder can: write a path that ends with .m3u8, such as /srv/hls/${feed}/master.m3u8, or let "
      "from name one encode"}},
    {"RenditionsWithOptionsOfOnePlaylist",
     renditions_with(kBoth + ", options: {hls_base_url: 'http://h/'}"),
     {"f.yaml:1:143: feeds.a.outputs.o.options.hls_base_url: is for a single playlist, and from "
      "has several encodes, each with a folder of its own; remove it"}},
    {"RenditionsWithAWrongOption",
     renditions_with(kBoth + ", options: {hls_tim: 1}"),
     {"f.yaml:1:143: feeds.a.outputs.o.options.hls_tim: is not an option of the container hls "
      "here; did you mean \"hls_time\"?"}},
    {"RenditionThatCopies",
     renditions_with(kBoth, "x: {video: {gop: 2s}}, y: {video: copy}"),
     {"f.yaml:1:106: feeds.a.outputs.o.from[1]: takes encode \"y\", which copies: its keyframes "
      "are where the camera has them, and renditions need them at the same times; take one that "
      "encodes"}},
    {"RenditionWithoutGop",
     renditions_with(kBoth, "x: {video: {gop: 2s}}, y: {}"),
     {"f.yaml:1:95: feeds.a.outputs.o.from[1]: takes encode \"y\", which does not say when "
      "keyframes come; give it a gop, such as gop: 2s"}},
    {"RenditionWithAnotherGop",
     renditions_with(kBoth, "x: {video: {gop: 2s}}, y: {video: {gop: 1s}}"),
     {"f.yaml:1:111: feeds.a.outputs.o.from[1]: takes encode \"y\" with another gop than encode "
      "\"x\"; renditions need keyframes at the same times: give both the same gop"}},
    {"RenditionThatCountsFrames",
     renditions_with(kBoth + kFmp4,
                     "x: {video: {gop: 2s}}, y: {video: {codec: [libsvtav1], gop: 2s}}"),
     {"f.yaml:1:131: feeds.a.outputs.o.from[1]: takes encode \"y\", whose codec libsvtav1 cannot "
      "be "
      "asked for a keyframe and counts frames instead, so that its segments would not stay beside "
      "those of the other renditions; for AV1 name libaom-av1 or av1_nvenc, for H.264 libx264"}},
    {"RenditionThatCountsFramesWhereTheFirstCodecIsMissing",
     renditions_with(kBoth + kFmp4,
                     "x: {video: {gop: 2s}}, y: {video: {codec: [libx264, libsvtav1], gop: 2s}}"),
     {"f.yaml:1:140: feeds.a.outputs.o.from[1]: takes encode \"y\", whose codec libsvtav1 cannot "
      "be "
      "asked for a keyframe and counts frames instead, so that its segments would not stay beside "
      "those of the other renditions; for AV1 name libaom-av1 or av1_nvenc, for H.264 libx264"}},
    {"RenditionWithFewerFramesThanSegments",
     renditions_with(kBoth + ", options: {hls_time: 1}",
                     "x: {video: {gop: 1s}}, y: {video: {gop: 1s}, convert: {rate: 1/3}}"),
     {"f.yaml:1:133: feeds.a.outputs.o.from[1]: takes encode \"y\" with a rate of 1/3, and not "
      "every segment of 1s would begin with one of its frames; give it a rate of 1, or the output "
      "options: {hls_time: 3}"}},
    {"RenditionWithFramesThatCannotBeginEverySegment",  // one would be a second late
     renditions_with(kBoth + ", options: {hls_time: 3}",
                     "x: {video: {gop: 1s}}, y: {video: {gop: 1s}, convert: {rate: 0.5}}"),
     {"f.yaml:1:133: feeds.a.outputs.o.from[1]: takes encode \"y\" with a rate of 1/2, and not "
      "every segment of 3s would begin with one of its frames; give it a rate of 2/3, or the "
      "output options: {hls_time: 4}"}},
    {"RenditionOfARateThatFitsNoWholeSecond",
     renditions_with(kBoth,
                     "x: {video: {gop: 2s}}, "
                     "y: {video: {gop: 2s}, convert: {rate: 10007/30011}}"),
     {"f.yaml:1:141: feeds.a.outputs.o.from[1]: takes encode \"y\" with a rate of 10007/30011, and "
      "not every segment of 2s would begin with one of its frames; give it a rate of 1/2"}},
    {"RenditionThatPlayersDoNotTake",
     renditions_with(kBoth, "x: {video: {gop: 2s}}, y: {video: {codec: mpeg2video, gop: 2s}}"),
     {"f.yaml:1:130: feeds.a.outputs.o.from[1]: takes encode \"y\", whose codec mpeg2video is "
      "nothing for it: the container hls cannot hold mpeg2video video; use H.264 or HEVC, which "
      "players take"}},
    {"RenditionThatPlayersDoNotTakeAndThatCountsFrames",
     renditions_with(kBoth, "x: {video: {gop: 2s}}, y: {video: {codec: libsvtav1, gop: 2s}}"),
     {"f.yaml:1:129: feeds.a.outputs.o.from[1]: takes encode \"y\", whose codec libsvtav1 is "
      "nothing for it: the container hls cannot hold av1 video; use H.264 or HEVC, which players "
      "take, or options: {hls_segment_type: fmp4}"}},
    {"RenditionsWithoutAFlagThatTheyHave",
     renditions_with(kBoth + ", options: {hls_flags: -independent_segments}"),
     {"f.yaml:1:154: feeds.a.outputs.o.options.hls_flags: takes away the flag "
      "independent_segments, which renditions always have, so that players can go from one to "
      "another; remove it"}},
    {"RenditionsInAFolderOfADay",
     renditions_with("from: [x, y], url: '/srv/%Y/m.m3u8'"),
     {"f.yaml:1:120: feeds.a.outputs.o.url: has %Y, and a playlist stays where it is: there would "
      "be a folder or file of that very name; remove it"}},
    {"PlaylistInAFolderOfADay",
     renditions_with("url: '/srv/%Y/m.m3u8'"),
     {"f.yaml:1:106: feeds.a.outputs.o.url: has %Y, and a playlist stays where it is: there would "
      "be a folder or file of that very name; remove it"}},
    {"RenditionInTheFolderOfTheSound",
     renditions_with("from: [x, audio]" + kMaster,
                     "x: {video: {gop: 2s}, audio: {}}, audio: {video: {gop: 2s}}"),
     {"f.yaml:1:126: feeds.a.outputs.o.from[1]: takes encode \"audio\", and the renditions' sound "
      "has the folder of that name; give the encode another name"}},
    {"TwoMastersInOnePlace",
     renditions_with(kBoth + "}, p: {" + kBoth),
     {"f.yaml:1:157: feeds.a.outputs.p.url: output \"p\" of feed \"a\" would write to the same "
      "place as output \"o\" of feed \"a\"; put ${feed} or ${output} into the url"}},
};
INSTANTIATE_TEST_SUITE_P(Renditions, WrongConfigTest, ::testing::ValuesIn(kRenditions), name_of);

TEST(RenditionsConfigTest, AListOfEncodesIsAnOutputForEachOfThemWithOneName) {
  const FeedOptions feed = test::load_feed(
      renditions_with("from: [y, x], url: '/srv/${feed}/${output}.m3u8', queue: 9"));
  ASSERT_EQ(feed.outputs.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    const OutputOptions& output = feed.outputs[i];
    EXPECT_EQ(output.name, "o");
    EXPECT_EQ(output.master, "/srv/a/o.m3u8");
    EXPECT_EQ(output.from, i == 0 ? "y" : "x");
    EXPECT_EQ(output.url, "/srv/a/" + output.from + "/index.m3u8");
    EXPECT_EQ(output.queue, 9);
    EXPECT_EQ(output.gop, std::chrono::seconds(2));
  }
}

TEST(RenditionsConfigTest, ALowRateIsRightIfEverySegmentBeginsWithAFrame) {
  const auto count = [](const std::string& gop, const std::string& rate, const std::string& time) {
    const std::string y = "{video: {gop: " + gop + "}, convert: {rate: " + rate + "}}";
    return test::load_feed(renditions_with(kBoth + ", options: {hls_time: " + time + "}",
                                           "x: {video: {gop: " + gop + "}}, y: " + y))
        .outputs.size();
  };
  EXPECT_EQ(count("1s", "1", "2.5"), 2U);  // a frame in each gop
  EXPECT_EQ(count("3s", "1/3", "1"), 2U);  // a segment is a gop
  EXPECT_EQ(count("1s", "1/3", "3"), 2U);  // one in each segment
  EXPECT_EQ(count("1s", "1/2", "4"), 2U);  // two
  EXPECT_EQ(count("900ms", "10/9", "5"), 2U);
}

TEST(RenditionTest, SoundIsWrittenOnceAsTheFirstEncodeHasIt) {
  const auto outputs = test::load(renditions_with(kBoth,
                                                  "x: {video: {gop: 2s}}, y: {video: {gop: 2s}, "
                                                  "audio: copy}"))
                           .feeds.front()
                           .outputs;
  ASSERT_EQ(outputs.size(), 3u);
  for (const OutputOptions& output : outputs) {
    EXPECT_EQ(output.name, "o");
    EXPECT_EQ(output.master, "/srv/m.m3u8");
  }
  EXPECT_EQ(outputs[0].url, "/srv/x/index.m3u8");
  EXPECT_EQ(outputs[0].only, StreamKind::kVideo);
  EXPECT_EQ(outputs[1].url, "/srv/y/index.m3u8");
  EXPECT_EQ(outputs[1].only, StreamKind::kVideo);
  EXPECT_EQ(outputs[2].url, "/srv/audio/index.m3u8");
  EXPECT_EQ(outputs[2].from, "y");
  EXPECT_EQ(outputs[2].only, StreamKind::kAudio);
}

}  // namespace
}  // namespace framelane
