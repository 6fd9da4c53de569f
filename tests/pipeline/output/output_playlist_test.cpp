#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "pipeline/base/failure.hpp"
#include "pipeline/output/playlist_writer.hpp"
#include "tests/pipeline/output/output_fixture.hpp"

namespace framelane {
namespace {

using namespace testing;  // of framelane
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

/// A segment per group of ten frames: five of them in a clip of fifty.
class OutputPlaylistTest : public ::testing::Test {
 protected:
  OutputPlaylistTest() { options_.options.push_back({"hls_time", "0.4"}); }
  std::string playlist() const { return text_of(folder_ / "live/index.m3u8"); }
  std::set<std::string> files() const { return names_in(folder_ / "live"); }
  void list_size(const char* size) { options_.options.push_back({"hls_list_size", size}); }

  const TempFolder folder_;
  OutputOptions options_ = output_to(folder_ / "live/index.m3u8");
  const Clip clip_ = encode_clip({});
};

TEST_F(OutputPlaylistTest, APlayerReadsEveryFrame) {
  TestOutput(options_).write(clip_, true);
  EXPECT_EQ(decoded_frames(folder_ / "live/index.m3u8"), 50u);
}

TEST_F(OutputPlaylistTest, OldSegmentsAreDeleted) {
  list_size("2");
  TestOutput(options_).write(clip_);
  EXPECT_EQ(occurrences(playlist(), "#EXTINF"), 2u);
  EXPECT_THAT(files(), Not(Contains("index-0.ts")));
  EXPECT_THAT(files(), Contains("index-4.ts"));
}

TEST_F(OutputPlaylistTest, SixSegmentsAreListedUnlessToldOtherwise) {
  TestOutput(options_).write(encode_clip({.frames = 100}));
  EXPECT_EQ(occurrences(playlist(), "#EXTINF"), 6u);
}

TEST_F(OutputPlaylistTest, EndsWhenRunOnce) {
  TestOutput(options_).write(clip_, true);
  EXPECT_THAT(playlist(), HasSubstr("#EXT-X-ENDLIST"));
}

TEST_F(OutputPlaylistTest, StaysOpenWhenADaemonStops) {
  TestOutput(options_).write(clip_);
  EXPECT_THAT(playlist(), Not(HasSubstr("#EXT-X-ENDLIST")));
}

TEST_F(OutputPlaylistTest, BeginsWithoutADiscontinuity) {
  TestOutput(options_).write(clip_);
  EXPECT_THAT(playlist(), Not(HasSubstr("#EXT-X-DISCONTINUITY")));
}

TEST_F(OutputPlaylistTest, ARestartGoesOnAfterOneDiscontinuity) {
  list_size("20");
  TestOutput(options_).write(clip_);
  TestOutput(options_).write(clip_);
  EXPECT_EQ(occurrences(playlist(), "#EXT-X-DISCONTINUITY"), 1u);
  EXPECT_EQ(occurrences(playlist(), "#EXTINF"), 10u);
  EXPECT_THAT(playlist(), HasSubstr("#EXT-X-DISCONTINUITY\n#EXTINF:0.400000,\nindex-5.ts"));
}

TEST_F(OutputPlaylistTest, ANewFormatGoesOnAfterOneDiscontinuity) {
  list_size("20");
  TestOutput output(options_);
  output.start();
  output.push(clip_);
  output.push(encode_clip({.width = 96, .start = 50}));
  output.finish();
  EXPECT_EQ(occurrences(playlist(), "#EXT-X-DISCONTINUITY"), 1u);
  EXPECT_EQ(occurrences(playlist(), "#EXTINF"), 10u);
}

/// The clip with a gap of so many frames before the one that is shown `first`. Encoders that
/// reorder decode a frame when an earlier one is shown, and so some frames behind the gap before
/// it.
Clip with_gap(Clip clip, std::int64_t first, std::int64_t frames) {
  std::vector<std::int64_t> shown;
  const std::int64_t ahead = clip.packets.front().packet->pts - clip.packets.front().packet->dts;
  for (ClipPacket& one : clip.packets) {
    AVPacket& packet = *one.packet;
    if (packet.pts >= first) packet.pts += frames;
    shown.push_back(packet.pts);
  }
  std::ranges::sort(shown);
  for (std::size_t i = static_cast<std::size_t>(ahead); i < shown.size(); ++i) {
    clip.packets[i].packet->dts = shown[i - static_cast<std::size_t>(ahead)];
  }
  return clip;
}

TEST_F(OutputPlaylistTest, AShortGapBelongsToTheSegmentBeforeItThoughPicturesAreReordered) {
  Clip clip = encode_clip({.b_frames = 2});
  ASSERT_GT(clip.packets.front().packet->pts, clip.packets.front().packet->dts);
  TestOutput(options_).write(with_gap(std::move(clip), 20, 15));
  EXPECT_THAT(playlist(),
              HasSubstr("#EXTINF:1.000000,\nindex-1.ts\n#EXTINF:0.400000,\nindex-2.ts"));
}

TEST_F(OutputPlaylistTest, AShortGapCutsNoSegmentWithoutAKeyframe) {
  options_.options = {{"hls_time", "0.8"}};
  TestOutput(options_).write(with_gap(encode_clip({.frames = 60, .gop = 20}), 30, 15));
  EXPECT_THAT(playlist(),
              HasSubstr("#EXTINF:0.800000,\nindex-0.ts\n#EXTINF:1.400000,\nindex-1.ts"));
}

TEST_F(OutputPlaylistTest, SegmentsBeforeOneThatIsLostAreDeleted) {
  list_size("20");
  TestOutput output(options_);
  output.start();
  output.push(clip_);
  ASSERT_TRUE(comes_true([&] { return std::filesystem::exists(folder_ / "live/index-3.ts"); }));
  std::filesystem::remove(folder_ / "live/index-3.ts");
  output.push(encode_clip({.width = 96, .start = 50}));
  output.finish();
  EXPECT_THAT(playlist(), HasSubstr("#EXT-X-MEDIA-SEQUENCE:4\n"));
  for (const char* name : {"index-0.ts", "index-1.ts", "index-2.ts"}) {
    EXPECT_THAT(files(), Not(Contains(name)));
  }
}

TEST_F(OutputPlaylistTest, ManyRestartsLeaveNoSegmentsBehind) {
  list_size("2");
  for (int i = 0; i < 4; ++i) TestOutput(options_).write(clip_);
  EXPECT_LE(files().size(), 4u);  // the playlist, two listed, one a viewer may still be reading
  EXPECT_THAT(playlist(), HasSubstr("index-19.ts"));
}

TEST_F(OutputPlaylistTest, FilesThatAreNotItsOwnStay) {
  std::filesystem::create_directories(folder_ / "live");
  const std::vector<std::string> others{"index.mp4", "indexes.ts",   "other-7.ts",
                                        "index7.ts", "index-007.ts", "index--7.ts",
                                        "index-.ts", "index-7-0.ts", "index-9x.ts.tmp"};
  for (const std::string& name : others) write_file(folder_ / ("live/" + name), {1});
  TestOutput(options_).write(clip_);
  EXPECT_THAT(files(), ::testing::IsSupersetOf(others));
}

TEST_F(OutputPlaylistTest, PlaylistsOfOneFolderKeepTheirSegmentsApart) {
  list_size("0");
  OutputOptions cam = options_;
  cam.url = folder_ / "live/cam.m3u8";
  OutputOptions cam1 = options_;
  cam1.url = folder_ / "live/cam1.m3u8";
  TestOutput(cam).write(encode_clip({.frames = 120}), true);  // up to segment 11
  TestOutput(cam1).write(clip_, true);
  EXPECT_EQ(decoded_frames(cam.url), 120u);
  EXPECT_EQ(decoded_frames(cam1.url), 50u);
}

TEST_F(OutputPlaylistTest, ARestartLeavesAnotherPlaylistsSegmentsAlone) {
  OutputOptions cam = options_;
  cam.url = folder_ / "live/cam.m3u8";
  OutputOptions cam1 = options_;
  cam1.url = folder_ / "live/cam1.m3u8";
  TestOutput(cam1).write(clip_, true);
  TestOutput(cam).write(clip_);
  TestOutput(cam).write(clip_);
  EXPECT_EQ(decoded_frames(cam1.url), 50u);
}

TEST_F(OutputPlaylistTest, FragmentedPlaylistsOfOneFolderHaveHeadersOfTheirOwn) {
  options_.options.push_back({"hls_segment_type", "fmp4"});
  OutputOptions other = options_;
  other.url = folder_ / "live/other.m3u8";
  TestOutput(options_).write(clip_, true);
  TestOutput(other).write(encode_clip({.width = 96}), true);
  EXPECT_EQ(probe_text(options_.url, "v:0", "stream=width"),
            std::to_string(clip_.format->video.parameters->width));
}

TEST_F(OutputPlaylistTest, TheUsersSegmentNamesReplaceOurs) {
  options_.options.push_back({"hls_segment_filename", folder_ / "live/part%03d.ts"});
  TestOutput(options_).write(clip_);
  EXPECT_THAT(files(), Contains("part004.ts"));
}

TEST_F(OutputPlaylistTest, ALastPictureWithoutADurationIsWritten) {
  Clip clip = encode_clip({.frames = 11});  // the last is a keyframe
  for (ClipPacket& packet : clip.packets) packet.packet->duration = 0;
  TestOutput(options_).write(clip, true);
  EXPECT_EQ(decoded_frames(options_.url), 11u);
}

TEST_F(OutputPlaylistTest, TwoPlaylistsDoNotWriteTheSameSegments) {
  options_.options.push_back({"hls_segment_filename", folder_ / "live/part%d.ts"});
  TestOutput one(options_);
  one.start();
  one.push(clip_);
  ASSERT_TRUE(comes_true([&] { return one.stats.up.load(); }));
  options_.url = folder_ / "live/other.m3u8";
  TestOutput other(options_);
  EXPECT_THROW(other.write(clip_, true), IoError);
}

TEST_F(OutputPlaylistTest, ALostPlaylistDoesNotReuseNumbers) {
  std::filesystem::create_directories(folder_ / "live");
  write_file(folder_ / "live/index-41.ts", {1});
  TestOutput(options_).write(clip_);
  EXPECT_THAT(playlist(), HasSubstr("\nindex-42.ts"));
  EXPECT_THAT(files(), Not(Contains("index-41.ts")));
}

TEST_F(OutputPlaylistTest, OneThatCannotBeReadIsNotTakenForNone) {
  list_size("20");
  TestOutput(options_).write(clip_);
  const std::string path = folder_ / "live/index.m3u8";
  std::filesystem::rename(path, folder_ / "saved");
  std::filesystem::create_symlink("index.m3u8", path);  // a loop
  {
    PlaylistWriter writer(options_, path, "output out");
    EXPECT_THROW(writer.begin_stretch(), IoError);
    EXPECT_THROW(writer.begin_stretch(), IoError);
  }
  std::filesystem::rename(folder_ / "saved", path);
  TestOutput(options_).write(clip_);
  EXPECT_THAT(playlist(), HasSubstr("#EXT-X-DISCONTINUITY\n#EXTINF:0.400000,\nindex-5.ts"));
}

TEST_F(OutputPlaylistTest, WhatAContinuedPlaylistNamesStaysIfItIsNotItsOwn) {
  list_size("2");
  const std::string outside = folder_ / "index-7.ts";
  const std::vector<std::string> uris{outside, "../index-8.ts", "notes.txt", "header.mp4"};
  std::string text = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MAP:URI=\"header.mp4\"\n";
  std::filesystem::create_directories(folder_ / "live");
  for (const std::string& uri : uris) {
    write_file(std::filesystem::path(folder_ / "live") / uri, {1});
    text += "#EXTINF:2.0,\n" + uri + "\n";
  }
  write_file(folder_ / "live/index.m3u8", {text.begin(), text.end()});
  options_.options.push_back({"hls_segment_type", "fmp4"});
  TestOutput(options_).write(clip_);
  EXPECT_EQ(occurrences(playlist(), "#EXTINF"), 2u);
  for (const std::string& uri : uris) {
    EXPECT_TRUE(std::filesystem::exists(std::filesystem::path(folder_ / "live") / uri)) << uri;
  }
}

TEST_F(OutputPlaylistTest, AnEndedPlaylistIsNotContinued) {
  TestOutput(options_).write(clip_, true);
  TestOutput(options_).write(clip_);
  EXPECT_EQ(occurrences(playlist(), "#EXTINF"), 5u);
  EXPECT_THAT(playlist(), Not(HasSubstr("\nindex-4.ts")));
  EXPECT_THAT(playlist(), HasSubstr("\nindex-5.ts"));
  EXPECT_THAT(files(), Not(Contains("index-0.ts")));
}

constexpr std::string_view kEnded =
    "#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:60\n#EXT-X-MEDIA-SEQUENCE:6\n"
    "#EXT-X-DISCONTINUITY-SEQUENCE:3\n#EXTINF:55.0,\nindex-6.ts\n#EXT-X-ENDLIST\n";

TEST_F(OutputPlaylistTest, OfAnEndedPlaylistTheNumbersAloneGoOn) {
  std::filesystem::create_directories(folder_ / "live");
  write_file(folder_ / "live/index.m3u8", {kEnded.begin(), kEnded.end()});
  options_.options.push_back({"hls_flags", "+independent_segments"});
  options_.gop = 400ms;
  TestOutput(options_).write(clip_);
  EXPECT_THAT(playlist(), HasSubstr("#EXT-X-TARGETDURATION:1\n"));
  EXPECT_THAT(playlist(), HasSubstr("#EXT-X-INDEPENDENT-SEGMENTS\n"));
  EXPECT_THAT(playlist(), HasSubstr("#EXT-X-MEDIA-SEQUENCE:7\n"));
  EXPECT_THAT(playlist(), HasSubstr("#EXT-X-DISCONTINUITY-SEQUENCE:3\n"));
}

/// The keyframe that an encoder begins with is at no multiple of gop, and the next one comes early.
TEST_F(OutputPlaylistTest, ASegmentEndsAtAnEarlyKeyframeIfTheNextOneWouldBeTooLate) {
  options_.options = {{"hls_time", "2"}, {"hls_list_size", "20"}};
  options_.gop = 2s;
  TestOutput(options_).write(encode_clip({.frames = 100, .gop = 50}));
  TestOutput output(options_);
  output.start();
  output.push(encode_clip({.frames = 30, .gop = 50}));
  output.push(encode_clip({.frames = 100, .gop = 50, .start = 30}));
  output.finish();
  EXPECT_THAT(playlist(),
              HasSubstr("#EXTINF:1.200000,\nindex-2.ts\n#EXTINF:2.000000,\nindex-3.ts\n"));
}

TEST_F(OutputPlaylistTest, IndependentSegmentsHaveATargetThatAllowsForTheGop) {
  options_.options.push_back({"hls_flags", "+independent_segments"});
  options_.gop = 3s;
  TestOutput(options_).write(clip_);  // whose groups are shorter
  EXPECT_THAT(playlist(), HasSubstr("#EXT-X-TARGETDURATION:3\n"));
}

TEST_F(OutputPlaylistTest, IndependentSegmentsNeedAGop) {
  options_.options.push_back({"hls_flags", "+independent_segments"});
  EXPECT_THROW(PlaylistWriter(options_, folder_ / "live/index.m3u8", "output out"), FeedError);
}

TEST_F(OutputPlaylistTest, AfterAnEndedPlaylistTheFirstSegmentDecidesTheTarget) {
  TestOutput(options_).write(clip_, true);
  TestOutput(options_).write(encode_clip({.gop = 50}));
  EXPECT_THAT(playlist(), HasSubstr("#EXT-X-TARGETDURATION:2\n"));
  EXPECT_EQ(occurrences(playlist(), "#EXTINF"), 1u);
}

TEST_F(OutputPlaylistTest, AnEndedPlaylistStaysUntilASegmentFollows) {
  std::filesystem::create_directories(folder_ / "live");
  write_file(folder_ / "live/index.m3u8", {kEnded.begin(), kEnded.end()});
  PlaylistWriter writer(options_, folder_ / "live/index.m3u8", "output out");
  writer.begin_stretch();
  writer.end();
  EXPECT_EQ(playlist(), kEnded);
}

TEST_F(OutputPlaylistTest, UnaskedItOverwritesNoSegmentWithANameOfTheUsers) {
  std::filesystem::create_directories(folder_ / "live");
  write_file(folder_ / "live/part002.ts", {'o', 'l', 'd'});
  options_.options.push_back({"hls_segment_filename", folder_ / "live/part%03d.ts"});
  options_.existing = Existing::kRefuse;
  EXPECT_THROW(TestOutput(options_).write(clip_, true), IoError);
  EXPECT_EQ(text_of(folder_ / "live/part002.ts"), "old");
}

TEST_F(OutputPlaylistTest, FoldersStay) {
  std::filesystem::create_directories(folder_ / "live/index-7.ts");
  options_.existing = Existing::kReplace;
  TestOutput(options_).write(clip_, true);
  EXPECT_TRUE(std::filesystem::is_directory(folder_ / "live/index-7.ts"));
}

TEST_F(OutputPlaylistTest, MpegTsDoesNotFollowMp4) {
  OutputOptions mp4 = options_;
  mp4.options.push_back({"hls_segment_type", "fmp4"});
  TestOutput(mp4).write(clip_);
  TestOutput(options_).write(clip_);
  EXPECT_THAT(playlist(), Not(HasSubstr("EXT-X-MAP")));
  EXPECT_EQ(occurrences(playlist(), "#EXTINF"), 5u);
  EXPECT_THAT(playlist(), HasSubstr("\nindex-5.ts"));
}

TEST_F(OutputPlaylistTest, OverwritingStartsAnew) {
  TestOutput(options_).write(clip_);
  options_.existing = Existing::kReplace;
  TestOutput(options_).write(clip_, true);
  EXPECT_EQ(occurrences(playlist(), "#EXTINF"), 5u);
  EXPECT_THAT(playlist(), HasSubstr("\nindex-0.ts"));
}

TEST_F(OutputPlaylistTest, TheUsersFlagsReplaceOurs) {
  list_size("2");
  options_.options.push_back({"hls_flags", "temp_file"});
  TestOutput(options_).write(clip_);
  EXPECT_THAT(files(), Contains("index-0.ts"));
  EXPECT_THAT(playlist(), Not(HasSubstr("INDEPENDENT")));
}

TEST_F(OutputPlaylistTest, SegmentsMayBeFragmentedMp4) {
  options_.options.push_back({"hls_segment_type", "fmp4"});
  TestOutput(options_).write(clip_, true);
  EXPECT_EQ(decoded_frames(folder_ / "live/index.m3u8"), 50u);
}

TEST_F(OutputPlaylistTest, HoldsAudio) {
  TestOutput(options_).write(encode_clip({.audio = "aac"}), true);
  EXPECT_EQ(probe_text(folder_ / "live/index.m3u8", "a:0", "stream=codec_name"), "aac");
}

}  // namespace
}  // namespace framelane
