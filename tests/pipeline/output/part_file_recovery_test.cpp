#include "pipeline/output/part_file_recovery.hpp"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>

#include "pipeline/output/part_file.hpp"
#include "tests/pipeline/base/log_capture.hpp"
#include "tests/pipeline/output/output_fixture.hpp"

namespace framelane {
namespace {

using namespace testing;  // of framelane
using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

void recover(const OutputOptions& options) {
  PartFileRecovery("feed cam: output out").recover(options);
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
  recover(output_to(folder / "out.ts"));
  EXPECT_THAT(names_in(folder / ""), UnorderedElementsAre("out.ts", "out.2.ts"));
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
