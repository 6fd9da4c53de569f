// Not built for ThreadSanitizer: one thread uses it.
#include "pipeline/output/media_playlist.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <string>

namespace framelane {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

PlaylistSegment segment(int number, bool discontinuity = false) {
  return {.uri = "cam-" + std::to_string(number) + ".ts",
          .duration = 2s,
          .discontinuity = discontinuity};
}

MediaPlaylist playlist(std::uint64_t first_number = 0) {
  return {{.target_duration = 2s}, first_number};
}

TEST(MediaPlaylistTest, SaysWhatTheStandardAsksFor) {
  MediaPlaylist list = playlist(7);
  list.add(segment(7), 6);
  list.add(segment(8, true), 6);
  EXPECT_EQ(list.text(false),
            "#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:7\n"
            "#EXTINF:2.000000,\ncam-7.ts\n#EXT-X-DISCONTINUITY\n#EXTINF:2.000000,\ncam-8.ts\n");
}

TEST(MediaPlaylistTest, EndsOnlyWhenNothingFollows) {
  EXPECT_THAT(playlist().text(true), ::testing::EndsWith("\n#EXT-X-ENDLIST\n"));
  EXPECT_THAT(playlist().text(false), Not(HasSubstr("ENDLIST")));
}

TEST(MediaPlaylistTest, OldSegmentsLeaveAndAreCounted) {
  MediaPlaylist list = playlist();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(list.add(segment(i), 3).empty());
  const auto gone = list.add(segment(3), 3);
  ASSERT_EQ(gone.size(), 1u);
  EXPECT_EQ(gone[0].uri, "cam-0.ts");
  EXPECT_THAT(list.text(false), HasSubstr("#EXT-X-MEDIA-SEQUENCE:1\n"));
  EXPECT_EQ(list.next_number(), 4u);
}

TEST(MediaPlaylistTest, ADiscontinuityThatLeavesIsCounted) {
  MediaPlaylist list = playlist();
  list.add(segment(0), 2);
  list.add(segment(1, true), 2);
  list.add(segment(2), 2);
  EXPECT_THAT(list.text(false), Not(HasSubstr("DISCONTINUITY-SEQUENCE")));
  list.add(segment(3), 2);
  EXPECT_THAT(list.text(false), HasSubstr("#EXT-X-DISCONTINUITY-SEQUENCE:1\n"));
  EXPECT_THAT(list.text(false), Not(HasSubstr("#EXT-X-DISCONTINUITY\n")));
}

TEST(MediaPlaylistTest, BeginsWithoutADiscontinuity) {
  MediaPlaylist list = playlist();
  list.add(segment(0, true), 6);
  EXPECT_THAT(list.text(false), Not(HasSubstr("DISCONTINUITY")));
}

TEST(MediaPlaylistTest, ANewInitSegmentIsNamedWhereItBegins) {
  MediaPlaylist list({.target_duration = 2s, .init_segments = true}, 0);
  for (const auto& [number, init] : {std::pair{0, "a.mp4"}, {1, "a.mp4"}, {2, "b.mp4"}}) {
    PlaylistSegment one = segment(number, number == 2);
    one.init = init;
    list.add(one, 6);
  }
  EXPECT_THAT(list.text(false),
              HasSubstr("#EXT-X-MAP:URI=\"a.mp4\"\n#EXTINF:2.000000,\ncam-0.ts\n#EXTINF:2.000000,\n"
                        "cam-1.ts\n#EXT-X-DISCONTINUITY\n#EXT-X-MAP:URI=\"b.mp4\"\n#EXTINF"));
  EXPECT_THAT(list.text(false), HasSubstr("#EXT-X-VERSION:6\n"));
}

TEST(MediaPlaylistTest, TheInitSegmentOfTheFirstSegmentIsAlwaysNamed) {
  MediaPlaylist list({.target_duration = 2s, .init_segments = true}, 0);
  for (int i = 0; i < 4; ++i) {
    PlaylistSegment one = segment(i);
    one.init = "a.mp4";
    list.add(one, 2);
  }
  EXPECT_THAT(list.text(false), HasSubstr("#EXT-X-MEDIA-SEQUENCE:2\n#EXT-X-MAP:URI=\"a.mp4\"\n"));
}

TEST(MediaPlaylistTest, ReadsBackWhatItWrites) {
  MediaPlaylist list(
      {.target_duration = 4s, .independent_segments = true, .init_segments = true, .event = true},
      41);
  const auto time = std::chrono::system_clock::time_point(1'700'000'000'123ms);
  for (int i = 41; i < 44; ++i) {
    PlaylistSegment one = segment(i, i == 42);
    one.duration = 3'999'999us;
    one.init = i < 42 ? "a b.mp4" : "c.mp4";
    one.time = time + (i - 41) * 4s;
    list.add(one, 2);
  }
  const std::string text = list.text(false);
  EXPECT_THAT(text, HasSubstr("#EXT-X-PROGRAM-DATE-TIME:2023-11-14T22:13:24.123Z\n"));
  const auto read = MediaPlaylist::parse(text);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->text(false), text);
  EXPECT_EQ(read->next_number(), 44u);
}

TEST(MediaPlaylistTest, ASegmentOfTheLongestLengthIsRoundedToTheTarget) {
  EXPECT_EQ(MediaPlaylist::target_for(playlist().longest_segment().value()), 2s);
  EXPECT_EQ(MediaPlaylist::target_for(2500ms), 3s);
}

class UnreadablePlaylistTest : public ::testing::TestWithParam<const char*> {};

TEST_P(UnreadablePlaylistTest, IsNotContinued) { EXPECT_FALSE(MediaPlaylist::parse(GetParam())); }

INSTANTIATE_TEST_SUITE_P(
    Texts, UnreadablePlaylistTest,
    ::testing::Values("", "\n", "#EXTM3U\n", "nonsense\n",
                      "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\ncam-0.t",  // torn
                      "#EXTM3U\n#EXT-X-TARGETDURATION:2\ncam-0.ts\n",
                      "#EXTM3U\n#EXT-X-TARGETDURATION:-2\n",
                      "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:-1,\ncam-0.ts\n",
                      "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:nan,\ncam-0.ts\n",
                      "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:-3\n",
                      "#EXTM3U\n#EXT-X-TARGETDURATION:2\n"
                      "#EXT-X-MEDIA-SEQUENCE:12345678901234567890\n",
                      "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-BYTERANGE:7@0\n",
                      "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MAP:URI=\"\"\n"));

TEST(DateTimeTest, OnlyADateIsRead) {
  for (const char* text : {"", "2023-11-14T22:13:24.123", "2023-11-14T22:13:24.123+0100",
                           "2023-11-14 22:13:24.123Z", "2023-1x-14T22:13:24.123Z"}) {
    EXPECT_FALSE(parse_date_time(text)) << text;
  }
}

TEST(MediaPlaylistTest, ASegmentThatIsMissingSaysSoAndIsRead) {
  MediaPlaylist list = playlist(7);
  list.add(segment(7), 6);
  PlaylistSegment gap = segment(8, true);
  gap.gap = true;
  list.add(gap, 6);
  EXPECT_THAT(list.text(false), HasSubstr("#EXT-X-GAP\n#EXTINF:2.000000,\ncam-8.ts\n"));
  const auto read = MediaPlaylist::parse(list.text(false));
  ASSERT_TRUE(read);
  EXPECT_FALSE(read->segments()[0].gap);
  EXPECT_TRUE(read->segments()[1].gap);
  EXPECT_EQ(read->text(false), list.text(false));
}

TEST(MediaPlaylistTest, ASectionBeginsWithEveryDiscontinuity) {
  MediaPlaylist list = playlist();
  EXPECT_EQ(list.section(), 0u);
  for (int number = 0; number < 4; ++number) list.add(segment(number, number >= 2), 2);
  EXPECT_EQ(list.section(), 2u);
}

TEST(MediaPlaylistTest, GoesOnAtAnyNumberInAnySection) {
  MediaPlaylist list = playlist();
  list.add(segment(0), 6);
  EXPECT_EQ(list.go_on_at(9, 3).size(), 1u);
  list.add(segment(9, true), 6);
  EXPECT_THAT(list.text(false),
              HasSubstr("#EXT-X-MEDIA-SEQUENCE:9\n#EXT-X-DISCONTINUITY-SEQUENCE:3\n#EXTINF"));
}

}  // namespace
}  // namespace framelane
