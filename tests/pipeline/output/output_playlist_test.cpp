#include <gmock/gmock.h>

#include <filesystem>

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

TEST_F(OutputPlaylistTest, ALostPlaylistDoesNotReuseNumbers) {
  std::filesystem::create_directories(folder_ / "live");
  write_file(folder_ / "live/index-41.ts", {1});
  TestOutput(options_).write(clip_);
  EXPECT_THAT(playlist(), HasSubstr("\nindex-42.ts"));
  EXPECT_THAT(files(), Not(Contains("index-41.ts")));
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
