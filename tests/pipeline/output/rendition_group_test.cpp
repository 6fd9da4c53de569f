// Not built for ThreadSanitizer: one thread uses it.
#include "pipeline/output/rendition_group.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/output/media_playlist.hpp"
#include "pipeline/output/playlist_writer.hpp"
#include "tests/pipeline/output/output_fixture.hpp"

namespace framelane {
namespace {

using namespace testing;  // of framelane
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

struct RenditionGroupTest : ::testing::Test {
  RenditionGroupTest() {
    for (const char* name : {"big", "small"}) group.add(playlist_of(name));
  }
  std::string playlist_of(const std::string& name) const { return folder / (name + "/index.m3u8"); }
  void publish(std::size_t rendition, std::uint64_t number, std::int64_t bytes = 1000) {
    group.published(rendition, number, bytes, 2s, 2s);
  }
  void leave_playlist(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(folder / name);
    std::ofstream(playlist_of(name)) << "#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:2\n"
                                     << text;
  }
  static MediaPacket keyframe_at(std::chrono::microseconds shown, AVRational rate,
                                 std::optional<std::chrono::microseconds> lost_until = {}) {
    auto format = std::make_shared<MediaFormat>();
    format->video.time_base = AV_TIME_BASE_Q;
    format->video.frame_rate = rate;
    format->lost_until = lost_until;
    MediaPacket keyframe{.packet = make_packet(), .format = std::move(format)};
    keyframe.packet->pts = shown.count();
    keyframe.packet->flags = AV_PKT_FLAG_KEY;
    return keyframe;
  }
  std::string master() const { return text_of(folder / "master.m3u8"); }

  const TempFolder folder;
  RenditionGroup group{folder / "master.m3u8", 2s};
};

TEST_F(RenditionGroupTest, ASlotIsTheLeastMultipleOfTheGopFromHlsTimeOn) {
  EXPECT_EQ(RenditionGroup::slot_length(2s, 2s), 2s);
  EXPECT_EQ(RenditionGroup::slot_length(3s, 2s), 4s);
  EXPECT_EQ(RenditionGroup::slot_length(500ms, 2s), 2s);
}

TEST_F(RenditionGroupTest, OnlyTheFirstFrameOfASlotBeginsIt) {
  EXPECT_EQ(group.slot_at(1999ms), 1);  // rounded by a time base
  EXPECT_EQ(group.slot_at(1998ms), 0);
  EXPECT_EQ(group.slot_at(-1s), -1);
  EXPECT_TRUE(group.begins_slot(keyframe_at(4s, {25, 1})));
  EXPECT_TRUE(group.begins_slot(keyframe_at(4033ms, {30, 1})));
  EXPECT_FALSE(group.begins_slot(keyframe_at(4500ms, {25, 1})));
  EXPECT_TRUE(group.begins_slot(keyframe_at(4500ms, {2, 1})));
  EXPECT_TRUE(group.begins_slot(keyframe_at(5400ms, {2, 3})));  // there is none at 3900 ms
  EXPECT_FALSE(group.begins_slot(keyframe_at(5600ms, {2, 3})));
  EXPECT_TRUE(group.begins_slot(keyframe_at(5900ms, {1, 3})));
}

TEST_F(RenditionGroupTest, ASlotOfWhichFramesWereLostDoesNotBegin) {
  EXPECT_FALSE(group.begins_slot(keyframe_at(4040ms, {25, 1}, 4s)));
  EXPECT_TRUE(group.begins_slot(keyframe_at(4s, {25, 1}, 3960ms)));
  EXPECT_TRUE(group.begins_slot(keyframe_at(6s, {25, 1}, 4s)));  // of the same format, later
}

TEST_F(RenditionGroupTest, ASlotHasTheSameNumberInAllRenditions) {
  group.open(0);
  EXPECT_EQ(group.begin(0, 0, 0), 0u);
  publish(0, 0);
  publish(0, 1);
  EXPECT_EQ(group.begin(1, 0, 0), 0u);  // its encoder is slower
  EXPECT_EQ(group.section_of(1), 0u);
}

TEST_F(RenditionGroupTest, ARenditionThatComesLaterJoinsWithoutADiscontinuity) {
  group.open(0);
  group.begin(0, 0, 0);
  publish(0, 0);
  publish(0, 1);
  EXPECT_EQ(group.begin(1, 1, 0), 1u);
  EXPECT_EQ(group.section_of(5), 0u);
}

TEST_F(RenditionGroupTest, ARenditionThatBeginsAgainGivesAllADiscontinuityThatNobodyHasMissed) {
  group.open(0);
  group.begin(0, 0, 0);
  group.begin(1, 0, 0);
  publish(0, 0);
  publish(0, 1);
  EXPECT_EQ(group.begin(1, 1, 1), std::nullopt);  // the other one's segment 1 has none
  EXPECT_EQ(group.section_of(1), 0u);
  EXPECT_EQ(group.begin(1, 2, 1), 2u);
  EXPECT_EQ(group.section_of(2), 1u);
  publish(0, 2);
  EXPECT_EQ(group.begin(0, 2, 2), 2u);  // also the other may begin there
  EXPECT_EQ(group.section_of(9), 1u);
}

TEST_F(RenditionGroupTest, ASegmentThatARenditionHasWrittenDoesNotBeginAgain) {
  group.open(0);
  group.begin(0, 0, 0);
  publish(0, 0);
  EXPECT_EQ(group.begin(0, 0, 1), std::nullopt);
  EXPECT_EQ(group.section_of(7), 0u);
  EXPECT_EQ(group.begin(0, 1, 1), 1u);
}

TEST_F(RenditionGroupTest, NumbersGoOnBehindThoseOfEveryRenditionOfAnEarlierRun) {
  leave_playlist("big", "#EXT-X-MEDIA-SEQUENCE:7\n#EXTINF:2.0,\nindex-7.ts\n");
  leave_playlist("small",
                 "#EXT-X-MEDIA-SEQUENCE:7\n#EXT-X-DISCONTINUITY-SEQUENCE:4\n#EXTINF:2.0,\n"
                 "index-7.ts\n#EXT-X-DISCONTINUITY\n#EXTINF:2.0,\nindex-8.ts\n");
  group.open(0);
  EXPECT_EQ(group.begin(0, 3, 8), 9u);
  EXPECT_EQ(group.begin(1, 2, 9), std::nullopt);  // from before the first one's beginning
  EXPECT_EQ(group.begin(1, 3, 9), 9u);
  EXPECT_EQ(group.section_of(9), 6u);
}

TEST_F(RenditionGroupTest, WhatARenditionLacksOfAnEarlierRunIsInTheSectionOfTheOthers) {
  leave_playlist("big", "#EXT-X-MEDIA-SEQUENCE:6\n#EXTINF:2.0,\nindex-6.ts\n");
  leave_playlist("small",
                 "#EXT-X-MEDIA-SEQUENCE:6\n#EXTINF:2.0,\nindex-6.ts\n#EXTINF:2.0,\nindex-7.ts\n"
                 "#EXT-X-DISCONTINUITY\n#EXTINF:2.0,\nindex-8.ts\n");
  group.open(0);
  EXPECT_EQ(group.begin(0, 0, 7), 9u);
  EXPECT_EQ(group.section_of(7), 0u);
  EXPECT_EQ(group.section_of(8), 1u);
  EXPECT_EQ(group.section_of(9), 2u);
}

/// Writes segments of these slots to the playlist of a rendition, as an Output does.
void write_segments(PlaylistWriter& writer, std::int64_t first_slot, int count) {
  writer.open();
  ASSERT_TRUE(writer.begin_rendition(first_slot));
  writer.begin_stretch();
  for (int i = 0; i < count; ++i) {
    std::ofstream(writer.segment_path()) << "pictures";
    writer.add_segment(2s, false, std::chrono::system_clock::time_point(2s * (first_slot + i)));
  }
}

/// Of each segment that is listed.
std::map<std::uint64_t, std::uint64_t> sections_of(const std::string& playlist) {
  const auto list = MediaPlaylist::parse(text_of(playlist)).value();
  std::map<std::uint64_t, std::uint64_t> sections;
  std::uint64_t number = list.next_number();
  std::uint64_t section = list.section();
  for (auto it = list.segments().rbegin(); it != list.segments().rend(); ++it) {
    sections[--number] = section;
    if (it->discontinuity) --section;
  }
  return sections;
}

TEST_F(RenditionGroupTest, RenditionsHaveTheSameSectionsAfterAProcessThatWasKilled) {
  const auto write = [&](int big, int small) {
    RenditionGroup of_run(folder / "master.m3u8", 2s);
    std::vector<std::unique_ptr<PlaylistWriter>> writers;
    for (const char* name : {"big", "small"}) {
      OutputOptions options = output_to(playlist_of(name));
      options.gop = 2s;
      options.options = {{"hls_time", "2"}, {"hls_list_size", "0"}};
      const std::size_t index = of_run.add(playlist_of(name));
      writers.push_back(
          std::make_unique<PlaylistWriter>(options, playlist_of(name), "test", &of_run, index));
    }
    write_segments(*writers[0], 0, big);
    if (small > 0) write_segments(*writers[1], 0, small);
  };
  write(2, 0);  // killed before the second one has a playlist
  write(3, 2);
  write(2, 4);
  write(2, 2);
  const auto big = sections_of(playlist_of("big"));
  const auto small = sections_of(playlist_of("small"));
  EXPECT_EQ(big.rbegin()->second, 3u);
  EXPECT_EQ(big, small);
}

TEST_F(RenditionGroupTest, TheMasterPlaylistComesWithTheFirstSegmentOfTheLastRendition) {
  group.open(0);
  group.describe(0, {.width = 1280, .height = 720});
  publish(0, 0);
  EXPECT_FALSE(std::filesystem::exists(folder / "master.m3u8"));
  group.describe(1, {.width = 640, .height = 360});
  publish(1, 0);
  EXPECT_THAT(master(), HasSubstr("RESOLUTION=1280x720\nbig/index.m3u8\n#EXT-X-STREAM-INF"));
  EXPECT_THAT(master(), HasSubstr("RESOLUTION=640x360\nsmall/index.m3u8\n"));
}

TEST_F(RenditionGroupTest, ARenditionThatIsDownDoesNotHoldTheMasterPlaylistUp) {
  group.open(0);
  for (std::uint64_t number = 0; number < 3; ++number) publish(0, number);
  EXPECT_THAT(master(), HasSubstr("big/index.m3u8"));
  EXPECT_THAT(master(), Not(HasSubstr("small/index.m3u8")));
  publish(1, 3);
  EXPECT_THAT(master(), HasSubstr("small/index.m3u8"));
}

TEST_F(RenditionGroupTest, TheMasterPlaylistFollowsWhatGrowsAndWhatChanges) {
  group.open(0);
  publish(0, 0, 1000);
  publish(1, 0, 1000);
  EXPECT_THAT(master(), HasSubstr("BANDWIDTH=4000,"));
  publish(0, 1, 500);
  EXPECT_THAT(master(), Not(HasSubstr("AVERAGE-BANDWIDTH=3000,")));  // it is still true
  publish(0, 2, 2000);
  EXPECT_THAT(master(), HasSubstr("BANDWIDTH=8000,"));
  group.describe(1, {.codecs = "avc1.42c01e", .width = 640, .height = 480});
  publish(0, 3, 10);  // the master playlist is written before the other has its next segment
  EXPECT_THAT(master(), HasSubstr("BANDWIDTH=4000,AVERAGE-BANDWIDTH=4000,CODECS=\"avc1.42c01e\","
                                  "RESOLUTION=640x480"));
}

TEST_F(RenditionGroupTest, OneGroupAloneWritesAMasterPlaylist) {
  group.open(0);
  RenditionGroup other{folder / "master.m3u8", 2s};
  other.add(playlist_of("big"));
  EXPECT_THROW(other.open(0), IoError);
  group.leave(0);
  EXPECT_NO_THROW(other.open(0));
}

struct RenditionSoundTest : RenditionGroupTest {
  RenditionSoundTest() {
    group.add(playlist_of("audio"), true);
    group.open(0);
    group.describe(0, {.codecs = "avc1.64001f", .width = 1280, .height = 720});
    group.describe(1, {.codecs = "avc1.64001e", .width = 640, .height = 360});
  }
  void publish_pictures(std::uint64_t number) {
    publish(0, number, 4000);
    publish(1, number, 1000);
  }
};

TEST_F(RenditionSoundTest, SoundIsNamedOnceAndCountsInEveryVariant) {
  publish_pictures(0);
  EXPECT_FALSE(std::filesystem::exists(folder / "master.m3u8"));
  group.describe(2, {.codecs = "mp4a.40.2"});
  publish(2, 0, 100);
  EXPECT_EQ(master(),
            "#EXTM3U\n#EXT-X-VERSION:6\n#EXT-X-INDEPENDENT-SEGMENTS\n"
            "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"sound\",NAME=\"sound\",DEFAULT=YES,AUTOSELECT=YES,"
            "URI=\"audio/index.m3u8\"\n"
            "#EXT-X-STREAM-INF:BANDWIDTH=16400,AVERAGE-BANDWIDTH=16400,"
            "CODECS=\"avc1.64001f,mp4a.40.2\",RESOLUTION=1280x720,AUDIO=\"sound\"\n"
            "big/index.m3u8\n"
            "#EXT-X-STREAM-INF:BANDWIDTH=4400,AVERAGE-BANDWIDTH=4400,"
            "CODECS=\"avc1.64001e,mp4a.40.2\",RESOLUTION=640x360,AUDIO=\"sound\"\n"
            "small/index.m3u8\n");
}

TEST_F(RenditionSoundTest, ASourceWithoutSoundIsNotWaitedFor) {
  group.leave_out(2);
  publish_pictures(0);
  EXPECT_THAT(master(), HasSubstr("CODECS=\"avc1.64001f\","));
  EXPECT_THAT(master(), Not(HasSubstr("AUDIO")));
}

TEST_F(RenditionSoundTest, TheMasterPlaylistFollowsSoundThatGoesAndComes) {
  group.describe(2, {.codecs = "mp4a.40.2"});
  publish_pictures(0);
  publish(2, 0);
  ASSERT_THAT(master(), HasSubstr("AUDIO"));
  group.leave_out(2);
  publish_pictures(1);
  EXPECT_THAT(master(), Not(HasSubstr("AUDIO")));
  group.describe(2, {.codecs = "mp4a.40.2"});
  publish_pictures(2);
  EXPECT_THAT(master(), HasSubstr("AUDIO"));
}

TEST_F(RenditionSoundTest, SoundAloneIsNoMasterPlaylist) {
  group.describe(2, {.codecs = "mp4a.40.2"});
  for (std::uint64_t number = 0; number < 4; ++number) publish(2, number);
  EXPECT_FALSE(std::filesystem::exists(folder / "master.m3u8"));
}

TEST_F(RenditionSoundTest, ACodecWithoutANameLeavesNoListOfCodecs) {
  group.describe(2, {});
  publish_pictures(0);
  publish(2, 0);
  EXPECT_THAT(master(), AllOf(HasSubstr("AUDIO"), Not(HasSubstr("CODECS"))));
}

}  // namespace
}  // namespace framelane
