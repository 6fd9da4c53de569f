#include "pipeline/output/part_file_recovery.hpp"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "pipeline/output/part_file.hpp"
#include "tests/pipeline/base/log_capture.hpp"
#include "tests/pipeline/output/old_files.hpp"
#include "tests/pipeline/output/output_fixture.hpp"

namespace framelane {
namespace {

using namespace testing;  // of framelane
using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

constexpr const char* kSubject = "feed cam: output out";

void recover(PartFileRecovery& recovery, const OutputOptions& options) {
  Interrupt calls{std::stop_token()};
  recovery.recover(options, calls, 1min);
}

void recover(const OutputOptions& options) {
  PartFileRecovery recovery(kSubject);
  recover(recovery, options);
}

/// A Matroska file's header and zeros, among which its demuxer looks for more for minutes.
void write_endless(const std::string& path) {
  write_file(path, {0x1a, 0x45, 0xdf, 0xa3, 0x8b, 0x42, 0x82, 0x88, 'm', 'a', 't', 'r', 'o', 's',
                    'k', 'a'});
  std::filesystem::resize_file(path, std::uintmax_t{64} << 30);
}

/// True while this process has the file open.
bool is_open(const std::string& path) {
  for (const auto& descriptor : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code closed;
    if (std::filesystem::read_symlink(descriptor, closed) == path) return true;
  }
  return false;
}

/// How long a call takes.
template <typename Call>
std::chrono::steady_clock::duration time_of(const Call& call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::steady_clock::now() - start;
}

TEST(PartFileRecoveryTest, APlayablePartBecomesItsName) {
  const TempFolder folder;
  TestOutput(output_to(folder / "x.ts")).write(encode_clip({}));
  std::filesystem::rename(folder / "x.ts", folder / "out.ts.part");
  recover(output_to(folder / "out.ts"));
  EXPECT_EQ(decoded_frames(folder / "out.ts"), 50u);
}

TEST(PartFileRecoveryTest, ANameThatIsTakenGetsANumber) {
  const TempFolder folder;
  TestOutput(output_to(folder / "x.ts")).write(encode_clip({}));
  std::filesystem::rename(folder / "x.ts", folder / "out.ts.part");
  write_file(folder / "out.ts", {1});
  std::vector<std::string> told;
  PartFileRecovery recovery(kSubject, PartFileRecovery::kLook,
                            [&](const std::string& path) { told.push_back(path); });
  recover(recovery, output_to(folder / "out.ts"));
  EXPECT_THAT(names_in(folder / ""), UnorderedElementsAre("out.ts", "out.2.ts"));
  EXPECT_THAT(told, ElementsAre(folder / "out.2.ts"));
}

TEST(PartFileRecoveryTest, WhatIsCutKeepsTheTimeAtWhichItWasWritten) {
  const TempFolder folder;
  TestOutput(output_to(folder / "x.mp4")).write(encode_clip({}));
  const auto size = std::filesystem::file_size(folder / "x.mp4") * 2 / 3;
  std::filesystem::resize_file(folder / "x.mp4", size);
  std::filesystem::rename(folder / "x.mp4", folder / "out.mp4.part");
  const auto written = std::filesystem::last_write_time(folder / "out.mp4.part") - 1h;
  std::filesystem::last_write_time(folder / "out.mp4.part", written);
  recover(output_to(folder / "out.mp4"));
  EXPECT_LT(std::filesystem::file_size(folder / "out.mp4"), size);
  EXPECT_EQ(std::filesystem::last_write_time(folder / "out.mp4"), written);
}

TEST(PartFileRecoveryTest, PartsWithNothingInThemAreRemoved) {
  const TempFolder folder;
  write_file(folder / "out.mp4.part", {});
  write_file(folder / "out.2.mp4.part", {0, 0, 0, 12, 'f', 't', 'y', 'p', 'i', 's', 'o', 'm'});
  recover(output_to(folder / "out.mp4"));
  EXPECT_TRUE(names_in(folder / "").empty());
}

TEST(PartFileRecoveryTest, ADamagedPartStaysAndIsNamed) {
  const TempFolder folder;
  for (const std::string name : {"out.mp4", "out.mkv", "out.ts"}) {
    TestOutput(output_to(folder / name)).write(encode_clip({}));
    Bytes bytes = read_file(folder / name);
    std::filesystem::remove(folder / name);
    bytes.resize(4096);
    std::fill(bytes.begin(), bytes.end(), std::uint8_t{0});
    write_file(folder / (name + ".part"), bytes);
    const LogCapture log;
    recover(output_to(folder / name));
    EXPECT_TRUE(std::filesystem::exists(folder / (name + ".part"))) << name;
    EXPECT_EQ(log.count(name + ".part stays as it is: nothing in it can be read"), 1u);
  }
}

TEST(PartFileRecoveryTest, OtherPartsStayAsTheyAre) {
  const TempFolder folder;
  write_file(folder / "dog.mp4.part", {});
  recover(output_to(folder / "cam.mp4"));
  EXPECT_THAT(names_in(folder / ""), ElementsAre("dog.mp4.part"));
}

TEST(PartFileRecoveryTest, APartThatIsBeingWrittenStays) {
  const TempFolder folder;
  const PartFile file = PartFile::create(folder / "out.mp4", 1, Existing::kNumber);
  recover(output_to(folder / "out.mp4"));
  EXPECT_THAT(names_in(folder / ""), ElementsAre("out.mp4.part"));
}

TEST(PartFileRecoveryTest, APartThatCannotBeOpenedIsNamedAndTriedAgain) {
  const TempFolder folder;
  const std::string part = folder / "out.ts.part";
  write_file(part, Bytes(4096));
  std::filesystem::permissions(part, std::filesystem::perms(0444));
  const OutputOptions options = output_to(folder / "out.ts");
  PartFileRecovery recovery(kSubject);
  const LogCapture log;
  {
    const WithoutRootsRights ordinary;
    recover(recovery, options);
  }
  EXPECT_EQ(log.count("out.ts.part keeps this name for now: cannot open"), 1u);
  std::filesystem::permissions(part, std::filesystem::perms(0644));
  recovery.retry(container_on_disk(options), {});
  EXPECT_EQ(log.count("out.ts.part stays as it is: nothing in it can be read"), 1u);
}

TEST(PartFileRecoveryTest, TheFilesOfAStartTakeOneLookAndTheOthersWait) {
  const TempFolder folder;
  for (int i = 2; i < 12; ++i) write_endless(folder / fmt::format("out.{}.mkv.part", i));
  TestOutput(output_to(folder / "x.mkv")).write(encode_clip({}));
  std::filesystem::rename(folder / "x.mkv", folder / "out.mkv.part");  // the last one
  const OutputOptions options = output_to(folder / "out.mkv");
  PartFileRecovery recovery(kSubject, 100ms);
  EXPECT_LT(time_of([&] { recover(recovery, options); }), 900ms);
  EXPECT_TRUE(std::filesystem::exists(folder / "out.mkv.part"));
  std::stop_source stop;
  stop.request_stop();  // looks end soon
  EXPECT_TRUE(comes_true([&] {
    recovery.retry(container_on_disk(options), stop.get_token());
    return !std::filesystem::exists(folder / "out.mkv.part");
  }));
  EXPECT_EQ(decoded_frames(folder / "out.mkv"), 50u);
}

TEST(PartFileRecoveryTest, ARetryTakesASecondHoweverManyFilesWait) {
  const TempFolder folder;
  for (int i = 2; i < 6; ++i) write_endless(folder / fmt::format("out.{}.mkv.part", i));
  TestOutput(output_to(folder / "x.mkv")).write(encode_clip({}));
  std::filesystem::rename(folder / "x.mkv", folder / "out.mkv.part");
  std::filesystem::permissions(folder / "out.mkv.part", std::filesystem::perms(0444));
  const OutputOptions options = output_to(folder / "out.mkv");
  PartFileRecovery recovery(kSubject, 20ms);
  {
    const WithoutRootsRights ordinary;
    recover(recovery, options);
  }
  std::filesystem::permissions(folder / "out.mkv.part", std::filesystem::perms(0644));
  const Container container = container_on_disk(options);
  EXPECT_LT(time_of([&] { recovery.retry(container, {}); }), 3s);
  // Those that were not reached come first in the next calls.
  for (int i = 0; i < 4; ++i) {
    std::stop_source stop;
    stop.request_stop();
    recovery.retry(container, stop.get_token());
  }
  EXPECT_EQ(decoded_frames(folder / "out.mkv"), 50u);
}

TEST(PartFileRecoveryTest, AfterAStopNoFileHoldsItUp) {
  const TempFolder folder;
  for (int i = 2; i < 6; ++i) write_endless(folder / fmt::format("out.{}.mkv.part", i));
  const OutputOptions options = output_to(folder / "out.mkv");
  const Container container = container_on_disk(options);
  PartFileRecovery recovery(kSubject);
  std::stop_source stop;
  stop.request_stop();
  for (int i = 2; i < 6; ++i) {
    auto part = PartFile::adopt(folder / fmt::format("out.{}.mkv.part", i));
    ASSERT_TRUE(part);
    EXPECT_LT(time_of([&] { recovery.salvage(*part, container, stop.get_token()); }), 900ms);
  }
  EXPECT_LT(time_of([&] { recovery.retry(container, stop.get_token()); }), 900ms);
}

TEST(PartFileRecoveryTest, AStopEndsARetry) {
  const TempFolder folder;
  write_endless(folder / "out.mkv.part");
  const OutputOptions options = output_to(folder / "out.mkv");
  PartFileRecovery recovery(kSubject, 20ms);
  recover(recovery, options);
  std::stop_source stop;
  std::jthread thread([&] { recovery.retry(container_on_disk(options), stop.get_token()); });
  EXPECT_TRUE(comes_true([&] { return is_open(folder / "out.mkv.part"); }));
  stop.request_stop();
  EXPECT_LT(time_of([&] { thread.join(); }), 700ms);
}

TEST(PartFileRecoveryTest, TheFoldersOfAPatternAreSearched) {
  const TempFolder folder;
  TestOutput(output_to(folder / "2024/02-03/x.ts")).write(encode_clip({}));
  std::filesystem::rename(folder / "2024/02-03/x.ts", folder / "2024/02-03/10.ts.part");
  recover(output_to(folder / "%Y/%m-%d/%H.ts"));
  EXPECT_THAT(names_in(folder / ""), ElementsAre("2024/02-03/10.ts"));
}

TEST(PartFileRecoveryTest, APartThatPointsElsewhereIsNotFollowed) {
  const TempFolder folder;
  const std::string text =
      "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nhttp://127.0.0.1:9/a.ts\n";
  write_file(folder / "out.ts.part", Bytes(text.begin(), text.end()));
  const auto start = std::chrono::steady_clock::now();
  recover(output_to(folder / "out.ts"));
  EXPECT_THAT(names_in(folder / ""), ElementsAre("out.ts.part"));
  // What plays playlists would ask for another one for 100 s.
  EXPECT_LT(std::chrono::steady_clock::now() - start, 20s);
}

class KilledOutputTest : public ::testing::TestWithParam<const char*> {};

TEST_P(KilledOutputTest, LeavesAPlayableFile) {
  const TempFolder folder;
  const std::string path = folder / (std::string("out.") + GetParam());
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    TestOutput output(output_to(path));
    output.start();
    output.push(encode_clip({}));
    for (;;) pause();
  }
  EXPECT_TRUE(comes_true([&] {
    std::error_code error;
    return std::filesystem::file_size(path + ".part", error) > 5000 && !error;
  }));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  recover(output_to(path));
  EXPECT_GE(decoded_frames(path, true), 20u);  // killed anywhere, also inside a write
}

INSTANTIATE_TEST_SUITE_P(Files, KilledOutputTest, ::testing::Values("mp4", "mkv", "ts"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace framelane
