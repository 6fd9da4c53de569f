#include "pipeline/output/playable.hpp"

#include <gtest/gtest.h>

#include <algorithm>
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

/// As if a playlist were read as one recording.
Container playlist_container() {
  return {.kind = OutputKind::kFile, .muxer = av_guess_format("hls", nullptr, nullptr), .url = {}};
}

class PlayableTest : public ::testing::Test {
 protected:
  Contents contents(const std::string& name, const std::string& format = {}) {
    OutputOptions options = output_to(folder_ / name);
    options.format = format;
    return contents_of(folder_ / name, container_of(options), {});
  }
  const TempFolder folder_;
};

TEST_F(PlayableTest, AFileWithPicturesIs) {
  for (const char* name : {"a.mp4", "a.mkv", "a.ts"}) {
    TestOutput(output_to(folder_ / name)).write(encode_clip({}));
    EXPECT_EQ(contents(name), Contents::kPlayable) << name;
  }
}

// The least that each muxer writes before the first picture.
TEST_F(PlayableTest, AHeaderAloneIsNothing) {
  for (const auto& [name, size] : {std::pair{"a.mp4", 32}, std::pair{"a.ts", 3 * 188}}) {
    TestOutput(output_to(folder_ / name)).write(encode_clip({}));
    const Bytes bytes = read_file(folder_ / name);
    const int header = size == 32 ? bytes[3] : size;
    std::filesystem::resize_file(folder_ / name, static_cast<std::uintmax_t>(header));
    EXPECT_EQ(contents(name), Contents::kNothing) << name;
  }
}

TEST_F(PlayableTest, AHeaderOfMatroskaAloneIsNothing) {
  TestOutput(output_to(folder_ / "a.mkv")).write(encode_clip({}));
  const Bytes bytes = read_file(folder_ / "a.mkv");
  const Bytes cluster{0x1f, 0x43, 0xb6, 0x75};
  const auto header = std::search(bytes.begin(), bytes.end(), cluster.begin(), cluster.end());
  const auto size = static_cast<std::uintmax_t>(header - bytes.begin());
  std::filesystem::resize_file(folder_ / "a.mkv", size);
  EXPECT_EQ(contents("a.mkv"), Contents::kNothing);
  std::filesystem::resize_file(folder_ / "a.mkv", size - 1);
  EXPECT_EQ(contents("a.mkv"), Contents::kDamaged);
}

TEST_F(PlayableTest, AHeaderThatMissesItsEndIsDamaged) {
  TestOutput(output_to(folder_ / "a.mkv")).write(encode_clip({}));
  std::filesystem::resize_file(folder_ / "a.mkv", 200);
  EXPECT_EQ(contents("a.mkv"), Contents::kDamaged);
}

TEST_F(PlayableTest, AHeaderWithZerosBehindItIsDamaged) {
  TestOutput(output_to(folder_ / "a.mp4")).write(encode_clip({}));
  Bytes bytes = read_file(folder_ / "a.mp4");
  const Bytes tag{'m', 'o', 'o', 'f'};
  std::fill(std::search(bytes.begin(), bytes.end(), tag.begin(), tag.end()) - 4, bytes.end(),
            std::uint8_t{0});
  bytes.resize(60'000);
  write_file(folder_ / "a.mp4", bytes);
  EXPECT_EQ(contents("a.mp4"), Contents::kDamaged);
}

TEST_F(PlayableTest, AnEmptyFileIsNothing) {
  write_file(folder_ / "a.mp4", {});
  EXPECT_EQ(contents("a.mp4"), Contents::kNothing);
}

TEST_F(PlayableTest, AFileThatCannotBeReadIsAnError) { EXPECT_THROW(contents("b.mp4"), IoError); }

TEST_F(PlayableTest, NonsenseIsDamaged) {
  for (const char* name : {"a.mp4", "a.mkv", "a.ts"}) {
    write_file(folder_ / name, Bytes(1000, 7));
    EXPECT_EQ(contents(name), Contents::kDamaged) << name;
  }
}

TEST_F(PlayableTest, AnyByteOfRawVideoIs) {
  write_file(folder_ / "a.raw", {1});
  EXPECT_EQ(contents("a.raw", "rawvideo"), Contents::kPlayable);
}

TEST_F(PlayableTest, WhatCannotBeFoundOutInTimeIsAnError) {
  write_endless_playlist(folder_ / "a.m3u8");
  const Container container = playlist_container();
  EXPECT_THROW(contents_of(folder_ / "a.m3u8", container, {}, 50ms), IoError);
}

TEST_F(PlayableTest, AStopEndsTheLook) {
  write_endless_playlist(folder_ / "a.m3u8");
  const Container container = playlist_container();
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THROW(contents_of(folder_ / "a.m3u8", container, stop.get_token(), 1h), IoError);
}

TEST_F(PlayableTest, APartThatCouldNotBeExaminedStaysAsItIs) {
  write_endless_playlist(folder_ / "a.m3u8.part");
  std::stop_source stop;
  stop.request_stop();
  {
    auto part = PartFile::adopt(folder_ / "a.m3u8.part");
    ASSERT_TRUE(part);
    const Container container = playlist_container();
    EXPECT_EQ(
        part->salvage(container, stop.get_token(), std::chrono::steady_clock::now() + 1h).fate,
        PartFile::Fate::kStays);
  }
  EXPECT_EQ(names_in(folder_ / ""), std::set<std::string>{"a.m3u8.part"});
}

}  // namespace
}  // namespace framelane
