#include "pipeline/output/playable.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "pipeline/base/failure.hpp"
#include "pipeline/output/part_file.hpp"
#include "tests/pipeline/output/output_fixture.hpp"

namespace framelane {
namespace {

using namespace testing;  // of framelane

/// A playlist that names a file which does not exist: its demuxer tries again and again.
void write_endless_playlist(const std::string& path) {
  const std::string text = "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n/nowhere/a.ts\n";
  write_file(path, Bytes(text.begin(), text.end()));
}

class PlayableTest : public ::testing::Test {
 protected:
  bool playable(const std::string& name, const std::string& format = {}) {
    OutputOptions options = output_to(folder_ / name);
    options.format = format;
    return is_playable(folder_ / name, container_of(options), {});
  }
  const TempFolder folder_;
};

TEST_F(PlayableTest, AFileWithPicturesIs) {
  for (const char* name : {"a.mp4", "a.mkv", "a.ts"}) {
    TestOutput(output_to(folder_ / name)).write(encode_clip({}));
    EXPECT_TRUE(playable(name)) << name;
  }
}

TEST_F(PlayableTest, AHeaderAloneIsNot) {
  TestOutput(output_to(folder_ / "a.mkv")).write(encode_clip({}));
  std::filesystem::resize_file(folder_ / "a.mkv", 200);
  EXPECT_FALSE(playable("a.mkv"));
}

TEST_F(PlayableTest, NeitherAnEmptyFileNorAMissingOneIs) {
  write_file(folder_ / "a.mp4", {});
  EXPECT_FALSE(playable("a.mp4"));
  EXPECT_FALSE(playable("b.mp4"));
}

TEST_F(PlayableTest, NonsenseIsNot) {
  write_file(folder_ / "a.mp4", Bytes(1000, 7));
  EXPECT_FALSE(playable("a.mp4"));
}

TEST_F(PlayableTest, AnyByteOfRawVideoIs) {
  write_file(folder_ / "a.raw", {1});
  EXPECT_TRUE(playable("a.raw", "rawvideo"));
}

TEST_F(PlayableTest, WhatCannotBeFoundOutInTimeIsAnError) {
  write_endless_playlist(folder_ / "a.m3u8");
  const Container container = container_of(output_to(folder_ / "a.m3u8"));
  EXPECT_THROW(is_playable(folder_ / "a.m3u8", container, {}, 50ms), IoError);
}

TEST_F(PlayableTest, AStopEndsTheLook) {
  write_endless_playlist(folder_ / "a.m3u8");
  const Container container = container_of(output_to(folder_ / "a.m3u8"));
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THROW(is_playable(folder_ / "a.m3u8", container, stop.get_token(), 1h), IoError);
}

TEST_F(PlayableTest, APartThatCouldNotBeExaminedStaysAsItIs) {
  write_endless_playlist(folder_ / "a.m3u8.part");
  std::stop_source stop;
  stop.request_stop();
  {
    auto part = PartFile::adopt(folder_ / "a.m3u8.part");
    ASSERT_TRUE(part);
    EXPECT_EQ(part->salvage(container_of(output_to(folder_ / "a.m3u8")), stop.get_token()), "");
  }
  EXPECT_EQ(names_in(folder_ / ""), std::set<std::string>{"a.m3u8.part"});
}

}  // namespace
}  // namespace framelane
