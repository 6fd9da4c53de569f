#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>
#include <string>

#include "pipeline/output/file_pattern.hpp"
#include "tests/pipeline/output/output_fixture.hpp"

namespace framelane {
namespace {

using namespace testing;  // of framelane
using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

OutputOptions segments_to(const std::string& url, std::chrono::milliseconds length = 800ms) {
  OutputOptions options = output_to(url);
  options.segment =
      SegmentOptions{.length = length, .keep_age = {}, .keep_bytes = {}, .keep_free = {}};
  return options;
}

TEST(OutputFilesTest, AnExistingFileIsNeverOverwritten) {
  const TempFolder folder;
  write_file(folder / "out.mp4", {1, 2, 3});
  TestOutput(output_to(folder / "out.mp4")).write(encode_clip({}));
  EXPECT_EQ(read_file(folder / "out.mp4"), (Bytes{1, 2, 3}));
  EXPECT_EQ(decoded_frames(folder / "out.2.mp4"), 50u);
}

TEST(OutputFilesTest, EachFileIsToldWhenItIsComplete) {
  const TempFolder folder;
  TestOutput output(segments_to(folder / "%s.mkv"));
  output.write(encode_clip({}));
  std::set<std::string> names;
  std::chrono::nanoseconds length{};
  for (const CompletedFile& file : output.files) {
    EXPECT_EQ(file.feed, "gate");
    EXPECT_EQ(file.output, "out");
    EXPECT_EQ(file.bytes, std::filesystem::file_size(file.path));
    names.insert(std::filesystem::path(file.path).filename());
    length += *file.end - *file.begin;
  }
  EXPECT_EQ(names.size(), output.files.size());
  EXPECT_EQ(names, names_in(folder / ""));
  EXPECT_GT(names.size(), 1u);
  // 50 frames of 40 ms. The clip does not say how long the last one of each file is.
  EXPECT_EQ(std::chrono::round<std::chrono::milliseconds>(length),
            2s - 40ms * static_cast<int>(names.size()));
}

TEST(OutputFilesTest, AFileThatAppearsMeanwhileIsNotOverwrittenEither) {
  const TempFolder folder;
  TestOutput output(output_to(folder / "out.mp4"));
  output.start();
  output.push(encode_clip({}));
  ASSERT_TRUE(comes_true([&] { return output.stats.up.load(); }));
  write_file(folder / "out.mp4", {1, 2, 3});
  output.finish();
  EXPECT_EQ(read_file(folder / "out.mp4"), (Bytes{1, 2, 3}));
  EXPECT_EQ(decoded_frames(folder / "out.2.mp4"), 50u);
}

TEST(OutputFilesTest, OverwritingReplacesWhenComplete) {
  const TempFolder folder;
  write_file(folder / "out.mp4", {1, 2, 3});
  OutputOptions options = output_to(folder / "out.mp4");
  options.existing = Existing::kReplace;
  TestOutput(options).write(encode_clip({}), true);
  EXPECT_EQ(decoded_frames(folder / "out.mp4"), 50u);
  EXPECT_THAT(names_in(folder / ""), ElementsAre("out.mp4"));
}

TEST(OutputFilesTest, WhatAppearsMeanwhileIsReplacedOnlyWhereAsked) {
  const TempFolder folder;
  OutputOptions options = output_to(folder / "out.mp4");
  options.existing = Existing::kRefuse;
  TestOutput output(options);
  output.start(true);
  output.push(encode_clip({}));
  ASSERT_TRUE(comes_true([&] { return output.stats.up.load(); }));
  write_file(folder / "out.mp4", {1, 2, 3});
  EXPECT_THROW(output.finish(), IoError);
  EXPECT_EQ(read_file(folder / "out.mp4"), (Bytes{1, 2, 3}));
  EXPECT_EQ(decoded_frames(folder / "out.mp4.part"), 50u);
}

TEST(OutputFilesTest, AnInterruptedRunsPartIsWrittenOver) {
  const TempFolder folder;
  write_file(folder / "out.mp4.part", Bytes(100'000, 1));
  OutputOptions options = output_to(folder / "out.mp4");
  options.existing = Existing::kRefuse;
  TestOutput(options).write(encode_clip({}), true);
  EXPECT_EQ(decoded_frames(folder / "out.mp4"), 50u);
  EXPECT_THAT(names_in(folder / ""), ElementsAre("out.mp4"));
}

TEST(OutputFilesTest, SegmentsEndAtTheFirstKeyframeAfterTheirLength) {
  const TempFolder folder;
  TestOutput(segments_to(folder / "a/b/cam.mp4")).write(encode_clip({.b_frames = 2}));
  EXPECT_EQ(decoded_frames(folder / "a/b/cam.mp4"), 20u);
  EXPECT_EQ(decoded_frames(folder / "a/b/cam.2.mp4"), 20u);
  EXPECT_EQ(decoded_frames(folder / "a/b/cam.3.mp4"), 10u);
}

TEST(OutputFilesTest, EverySegmentBeginsNearZero) {
  const TempFolder folder;
  TestOutput(segments_to(folder / "cam.mp4")).write(encode_clip({.start = 5000}));
  EXPECT_LT(std::stod(probe_text(folder / "cam.3.mp4", "v:0", "stream=start_time")), 0.1);
}

TEST(OutputFilesTest, ASegmentsAudioIsThatOfItsPictures) {
  const TempFolder folder;
  const Clip clip = encode_clip({.audio = "aac"});
  TestOutput output(segments_to(folder / "cam.mkv"));
  output.start();
  // As a copy past an encoder that looks ahead: all the sound before the picture.
  for (StreamKind kind : {StreamKind::kAudio, StreamKind::kVideo}) {
    for (const ClipPacket& p : clip.packets) {
      if (p.stream == kind) output.output.inlet().push(*p.packet, kind, clip.format, {});
    }
  }
  output.finish();
  for (const char* name : {"cam.mkv", "cam.2.mkv"}) {
    const Bytes packets =
        output_of("ffprobe -v error -select_streams a:0 -show_entries packet=pts -of csv=p=0 " +
                  (folder / name));
    const auto count = std::count(packets.begin(), packets.end(), '\n');
    EXPECT_NEAR(static_cast<double>(count), 0.8 * 48000 / 1024, 2.0) << name;
  }
}

TEST(OutputFilesTest, SegmentsAreNamedByTheTimeOfTheirFirstPacket) {
  const TempFolder folder;
  const auto before = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  TestOutput(segments_to(folder / "%Y/%s.ts", 1min)).write(encode_clip({}));
  const auto after = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  const std::set<std::string> names = names_in(folder / "");
  ASSERT_EQ(names.size(), 1u);
  const auto named = std::stoll(std::filesystem::path(*names.begin()).stem().string());
  EXPECT_GE(named, before);
  EXPECT_LE(named, after);
}

TEST(OutputFilesTest, KeepingASizeDeletesTheOldestOfItsOwnFiles) {
  const TempFolder folder;
  write_file(folder / "holiday.mp4", {1});
  write_file(folder / "cam.9.mkv", {1});
  OutputOptions options = segments_to(folder / "cam.mp4", 400ms);
  TestOutput(options).write(encode_clip({}));
  const auto two = std::filesystem::file_size(folder / "cam.4.mp4") +
                   std::filesystem::file_size(folder / "cam.5.mp4");
  for (int i = 2; i <= 5; ++i) std::filesystem::remove(numbered_name(folder / "cam.mp4", i));
  std::filesystem::remove(folder / "cam.mp4");
  options.segment->keep_bytes = static_cast<std::int64_t>(two + two / 4);
  TestOutput(options).write(encode_clip({}));
  EXPECT_THAT(names_in(folder / ""),
              UnorderedElementsAre("holiday.mp4", "cam.9.mkv", "cam.4.mp4", "cam.5.mp4"));
}

TEST(OutputFilesTest, KeepingAnAgeDeletesWhatIsOlder) {
  const TempFolder folder;
  const auto day_ago = std::filesystem::file_time_type::clock::now() - 24h;
  for (const char* name : {"cam.mp4", "dog.mp4", "cam.mp4.part"}) {
    write_file(folder / name, {1});
    std::filesystem::last_write_time(folder / name, day_ago);
  }
  OutputOptions options = segments_to(folder / "cam.mp4", 1min);
  options.segment->keep_age = 12h;
  TestOutput(options).write(encode_clip({}));
  EXPECT_THAT(names_in(folder / ""), UnorderedElementsAre("dog.mp4", "cam.mp4.part", "cam.2.mp4"));
}

TEST(OutputFilesTest, TheNewestFileIsKeptHoweverLarge) {
  const TempFolder folder;
  OutputOptions options = segments_to(folder / "cam.mp4");
  options.segment->keep_bytes = 1;
  TestOutput(options).write(encode_clip({}));
  EXPECT_THAT(names_in(folder / ""), ElementsAre("cam.3.mp4"));
}

TEST(OutputFilesTest, WhatIsTooOldGoesWhenTheOutputStartsAndWhileNothingIsWritten) {
  const TempFolder folder;
  const std::string old = folder / "cam.mp4";
  const auto write_old = [&] {
    const std::string name = folder / "not yet";  // it is old when it gets its name
    write_file(name, {1});
    std::filesystem::last_write_time(name, std::filesystem::file_time_type::clock::now() - 24h);
    std::filesystem::rename(name, old);
  };
  write_file(folder / "cam.2.mp4", {1});
  write_old();
  OutputOptions options = segments_to(old, 1min);
  options.segment->keep_age = 0s;  // so that it is due whenever no packet comes
  TestOutput output(options);
  output.start();
  EXPECT_TRUE(comes_true([&] { return !std::filesystem::exists(old); }));
  write_old();
  EXPECT_TRUE(comes_true([&] { return !std::filesystem::exists(old); }));
  EXPECT_TRUE(std::filesystem::exists(folder / "cam.2.mp4"));
}

}  // namespace
}  // namespace framelane
