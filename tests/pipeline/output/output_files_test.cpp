#include <gmock/gmock.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pipeline/output/leftovers.hpp"
#include "pipeline/output/part_file.hpp"
#include "tests/pipeline/base/log_capture.hpp"
#include "tests/pipeline/output/output_fixture.hpp"

namespace framelane {
namespace {

using namespace testing;  // of framelane
using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

OutputOptions segments_to(const std::string& url, std::chrono::milliseconds length = 800ms) {
  OutputOptions options = output_to(url);
  options.segment = SegmentOptions{.length = length, .keep_age = {}, .keep_bytes = {}};
  return options;
}

TEST(OutputFilesTest, AnExistingFileIsNeverOverwritten) {
  const TempFolder folder;
  write_file(folder / "out.mp4", {1, 2, 3});
  TestOutput(output_to(folder / "out.mp4")).write(encode_clip({}));
  EXPECT_EQ(read_file(folder / "out.mp4"), (Bytes{1, 2, 3}));
  EXPECT_EQ(decoded_frames(folder / "out.2.mp4"), 50u);
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

TEST(OutputFilesTest, AFileThatSomebodyWritesIsNotWrittenOver) {
  const TempFolder folder;
  PartFile first = PartFile::create(folder / "out.mp4", 1, Existing::kReplace);
  write_file(first.path(), {1, 2, 3});
  for (const Existing existing : {Existing::kReplace, Existing::kRefuse}) {
    EXPECT_THROW(PartFile::create(folder / "out.mp4", 1, existing), IoError);
  }
  EXPECT_EQ(first.complete(false), folder / "out.mp4");
  EXPECT_EQ(read_file(folder / "out.mp4"), (Bytes{1, 2, 3}));
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

TEST(OutputFilesTest, WhatIsTooOldGoesWhenTheOutputStarts) {
  const TempFolder folder;
  for (const char* name : {"cam.mp4", "cam.2.mp4"}) write_file(folder / name, {1});
  std::filesystem::last_write_time(folder / "cam.mp4",
                                   std::filesystem::file_time_type::clock::now() - 24h);
  OutputOptions options = segments_to(folder / "cam.mp4", 1min);
  options.segment->keep_age = 12h;
  TestOutput output(options);
  output.start();  // and no packet ever comes
  EXPECT_TRUE(comes_true([&] { return !std::filesystem::exists(folder / "cam.mp4"); }));
  EXPECT_TRUE(std::filesystem::exists(folder / "cam.2.mp4"));
}

TEST(OutputFilesTest, FilesGrowTooOldWithoutPacketsToo) {
  const TempFolder folder;
  const auto now = std::filesystem::file_time_type::clock::now();
  for (const char* name : {"cam.mp4", "cam.2.mp4"}) write_file(folder / name, {1});
  std::filesystem::last_write_time(folder / "cam.mp4", now + 1s);  // young when the output starts
  std::filesystem::last_write_time(folder / "cam.2.mp4", now + 1h);
  OutputOptions options = segments_to(folder / "cam.mp4", 1min);
  options.segment->keep_age = 1s;
  TestOutput output(options);
  output.start();
  EXPECT_TRUE(comes_true([&] { return !std::filesystem::exists(folder / "cam.mp4"); }));
}

TEST(OutputFilesTest, TheNewestFileIsKeptHoweverLarge) {
  const TempFolder folder;
  OutputOptions options = segments_to(folder / "cam.mp4");
  options.segment->keep_bytes = 1;
  TestOutput(options).write(encode_clip({}));
  EXPECT_THAT(names_in(folder / ""), ElementsAre("cam.3.mp4"));
}

/// What fsync() was called for, in order: a file by its name at that time, a folder by its only
/// file.
thread_local std::vector<std::string>* synced = nullptr;

}  // namespace
}  // namespace framelane

/// In place of the C library's.
extern "C" int fsync(int fd) {
  namespace fs = std::filesystem;
  if (framelane::synced) {
    const fs::path path = fs::read_symlink("/proc/self/fd/" + std::to_string(fd));
    const fs::path file = fs::is_directory(path) ? fs::directory_iterator(path)->path() : path;
    framelane::synced->push_back(file.filename().string());
  }
  return static_cast<int>(syscall(SYS_fsync, fd));
}

namespace framelane {
namespace {

TEST(OutputFilesTest, BothAFilesDataAndItsNameAreOnTheDiskWhenItIsComplete) {
  const TempFolder folder;
  PartFile file = PartFile::create(folder / "out.mp4", 1, Existing::kNumber);
  std::vector<std::string> order;
  synced = &order;
  file.complete(true);
  synced = nullptr;
  EXPECT_THAT(order, ElementsAre("out.mp4.part", "out.mp4"));
}

/// Whatever this thread does meanwhile, it may not pass over the rights of files, as root may.
class WithoutRootsRights {
 public:
  WithoutRootsRights() {
    EXPECT_EQ(syscall(SYS_capget, &header_, before_), 0);
    __user_cap_data_struct less[2] = {before_[0], before_[1]};
    less[0].effective &= ~(1u << CAP_DAC_OVERRIDE | 1u << CAP_FOWNER);
    EXPECT_EQ(syscall(SYS_capset, &header_, less), 0);
  }
  ~WithoutRootsRights() { syscall(SYS_capset, &header_, before_); }
  WithoutRootsRights(const WithoutRootsRights&) = delete;
  WithoutRootsRights& operator=(const WithoutRootsRights&) = delete;

 private:
  __user_cap_header_struct header_{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct before_[2]{};
};

TEST(OutputFilesTest, FilesThatCannotBeDeletedAreReportedOnce) {
  const TempFolder folder;
  std::filesystem::create_directory(folder / "2001");
  auto time = std::filesystem::file_time_type::clock::now() - 24h;
  for (const char* name : {"2001/cam.mp4", "2001/cam.2.mp4", "2001/cam.3.mp4"}) {
    write_file(folder / name, {1});
    std::filesystem::last_write_time(folder / name, time += 1s);
  }
  std::filesystem::permissions(folder / "2001", std::filesystem::perms(0555));
  OutputOptions options = segments_to(folder / "%Y/cam.mp4", 400ms);
  options.segment->keep_age = 12h;
  {
    const LogCapture log;
    const WithoutRootsRights ordinary;
    TestOutput output(options);
    output.push(encode_clip({}));
    output.output.inlet().finish();
    output.output.run({}, false);  // five segments
    EXPECT_EQ(log.count("completed"), 5u);
    EXPECT_EQ(log.count("cannot delete"), 1u);
    EXPECT_EQ(log.count("2001/cam.mp4: Permission denied; files that keep no longer allows, and "
                        "are still there: 2"),
              1u);
  }
  std::filesystem::permissions(folder / "2001", std::filesystem::perms(0755));
}

TEST(LeftoversTest, APlayablePartBecomesItsName) {
  const TempFolder folder;
  TestOutput(output_to(folder / "x.ts")).write(encode_clip({}));
  std::filesystem::rename(folder / "x.ts", folder / "out.ts.part");
  recover_leftovers(output_to(folder / "out.ts"), "cam");
  EXPECT_EQ(decoded_frames(folder / "out.ts"), 50u);
}

TEST(LeftoversTest, ANameThatIsTakenGetsANumber) {
  const TempFolder folder;
  TestOutput(output_to(folder / "x.ts")).write(encode_clip({}));
  std::filesystem::rename(folder / "x.ts", folder / "out.ts.part");
  write_file(folder / "out.ts", {1});
  recover_leftovers(output_to(folder / "out.ts"), "cam");
  EXPECT_THAT(names_in(folder / ""), UnorderedElementsAre("out.ts", "out.2.ts"));
}

TEST(LeftoversTest, PartsWithNothingToPlayAreRemoved) {
  const TempFolder folder;
  write_file(folder / "out.mp4.part", {});
  write_file(folder / "out.2.mp4.part", Bytes(100, 7));
  recover_leftovers(output_to(folder / "out.mp4"), "cam");
  EXPECT_TRUE(names_in(folder / "").empty());
}

TEST(LeftoversTest, OtherPartsStayAsTheyAre) {
  const TempFolder folder;
  write_file(folder / "dog.mp4.part", {});
  recover_leftovers(output_to(folder / "cam.mp4"), "cam");
  EXPECT_THAT(names_in(folder / ""), ElementsAre("dog.mp4.part"));
}

TEST(LeftoversTest, APartThatIsBeingWrittenStays) {
  const TempFolder folder;
  const PartFile file = PartFile::create(folder / "out.mp4", 1, Existing::kNumber);
  recover_leftovers(output_to(folder / "out.mp4"), "cam");
  EXPECT_THAT(names_in(folder / ""), ElementsAre("out.mp4.part"));
}

TEST(LeftoversTest, TheFoldersOfAPatternAreSearched) {
  const TempFolder folder;
  TestOutput(output_to(folder / "2024/02-03/x.ts")).write(encode_clip({}));
  std::filesystem::rename(folder / "2024/02-03/x.ts", folder / "2024/02-03/10.ts.part");
  recover_leftovers(segments_to(folder / "%Y/%m-%d/%H.ts"), "cam");
  EXPECT_THAT(names_in(folder / ""), ElementsAre("2024/02-03/10.ts"));
}

TEST(LeftoversTest, APartThatPointsElsewhereIsNotFollowed) {
  const TempFolder folder;
  const std::string text =
      "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nhttp://127.0.0.1:9/a.ts\n";
  write_file(folder / "out.ts.part", Bytes(text.begin(), text.end()));
  const auto start = std::chrono::steady_clock::now();
  recover_leftovers(output_to(folder / "out.ts"), "cam");
  EXPECT_TRUE(names_in(folder / "").empty());
  // What plays playlists would ask for another one for 100 s.
  EXPECT_LT(std::chrono::steady_clock::now() - start, 20s);
}

// No demuxer has the name of the muxer for .m4v: what is in the file decides what opens it.
TEST(LeftoversTest, APartThatHoldsUpWhoLooksAtItStays) {
  const TempFolder folder;
  const std::string text = "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n/nowhere/a.ts\n";
  write_file(folder / "out.m4v.part", Bytes(text.begin(), text.end()));
  const auto start = std::chrono::steady_clock::now();
  recover_leftovers(output_to(folder / "out.m4v"), "cam");
  EXPECT_THAT(names_in(folder / ""), ElementsAre("out.m4v.part"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, 30s);
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
  recover_leftovers(output_to(path), "cam");
  EXPECT_GE(decoded_frames(path, true), 20u);  // killed anywhere, also inside a write
}

INSTANTIATE_TEST_SUITE_P(Files, KilledOutputTest, ::testing::Values("mp4", "mkv", "ts"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace framelane
