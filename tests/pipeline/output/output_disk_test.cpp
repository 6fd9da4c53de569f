// Outputs whose disk is full or whose files may not grow.
#include <gmock/gmock.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <string>

#include "pipeline/output/media_playlist.hpp"
#include "tests/pipeline/output/output_fixture.hpp"

namespace framelane {
namespace {

using namespace testing;  // of framelane
using ::testing::HasSubstr;

OutputOptions full_device() {
  OutputOptions options = output_to("/dev/full");
  options.format = "mpegts";
  return options;
}

/// A small file system that can be filled up.
class TinyDisk {
 public:
  TinyDisk() { mounted_ = mount("tmpfs", (folder_ / "").c_str(), "tmpfs", 0, "size=256k") == 0; }
  ~TinyDisk() {
    if (mounted_) umount2((folder_ / "").c_str(), MNT_DETACH);
  }
  bool mounted() const { return mounted_; }
  std::string operator/(const std::string& name) const { return folder_ / name; }
  void fill() {
    struct statvfs disk;
    ASSERT_EQ(statvfs((folder_ / "").c_str(), &disk), 0);
    write_file(folder_ / "filler", Bytes(disk.f_bavail * disk.f_bsize, 1));
  }
  void make_room() { std::filesystem::remove(folder_ / "filler"); }

 private:
  TempFolder folder_;
  bool mounted_ = false;
};

/// While it lives, files of this process may not grow beyond `bytes`.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  void (*handler_)(int);
  rlimit before_{};
};

TEST(OutputDiskTest, AFullDiskPausesTheOutput) {
  TestOutput output(full_device(), TestOutput::WhenFull::kDrop);
  output.start();
  output.push(encode_clip({}));
  EXPECT_TRUE(comes_true([&] { return output.dropped(PacketDrop::kDiskFull) > 0; }));
  EXPECT_TRUE(comes_true([&] { return output.stats.paused.load(); }));
  EXPECT_TRUE(comes_true([&] { return output.stats.state().first == FeedState::kBackoff; }));
  EXPECT_THAT(output.stats.state().second, HasSubstr("No space left"));
  EXPECT_GE(output.reconnects(IoFault::kIo), 1u);
}

TEST(OutputDiskTest, RunOnceFailsAtTheFirstFailure) {
  TestOutput output(full_device());
  EXPECT_THROW(output.write(encode_clip({}), true), IoError);
  EXPECT_EQ(output.stats.state().first, FeedState::kFailed);
}

TEST(OutputDiskTest, WhoPushesIntoAFailedOutputIsNotHeldUp) {
  OutputOptions options = full_device();
  options.queue = 1;
  TestOutput output(options);
  output.start(true);
  output.push(encode_clip({}));  // more than fits, and nobody pops
  EXPECT_THROW(output.finish(), IoError);
  EXPECT_EQ(output.dropped(), 50u);
}

class FullDiskTest : public ::testing::TestWithParam<const char*> {};

TEST_P(FullDiskTest, TheOutputResumesAtAKeyframeWhenThereIsRoom) {
  TinyDisk disk;
  if (!disk.mounted()) GTEST_SKIP() << "mounting a file system needs root";
  OutputOptions options = output_to(disk / GetParam());
  options.options.push_back({"hls_time", "0.4", true});
  TestOutput output(options, TestOutput::WhenFull::kDrop);
  disk.fill();
  output.start();
  const Clip clip = encode_clip({.frames = 250});
  Clip more = later(clip, 0);
  std::size_t next = 0;
  const auto push_until = [&](const std::function<bool()>& condition) {
    return comes_true([&] {
      if (next == more.packets.size()) {
        more = later(more, 250);
        next = 0;
      }
      output.push(more, next++, 1);
      return condition();
    });
  };
  EXPECT_TRUE(push_until([&] { return output.dropped(PacketDrop::kDiskFull) > 0; }));
  EXPECT_TRUE(push_until([&] { return output.stats.paused.load(); }));
  disk.make_room();
  const std::uint64_t bytes = output.stats.bytes;
  EXPECT_TRUE(push_until([&] { return output.stats.up && output.stats.bytes > bytes + 30'000; }));
  output.finish();
  if (const std::string playlist = disk / "cam.m3u8"; std::filesystem::exists(playlist)) {
    std::ofstream(playlist, std::ios::app) << "#EXT-X-ENDLIST\n";  // else readers wait for more
  }
  bool playable = false;
  for (const std::string& name : names_in(disk / "")) {
    const bool whole = !name.ends_with(".part") && !name.ends_with(".tmp");
    if (whole && !name.ends_with(".lock") && name != "filler") {
      const std::size_t frames = decoded_frames(disk / name);  // to the last byte
      EXPECT_GE(frames, 1u) << name;
      playable |= frames >= 10;
    }
  }
  EXPECT_TRUE(playable);
}

INSTANTIATE_TEST_SUITE_P(Containers, FullDiskTest,
                         ::testing::Values("cam.mp4", "cam.ts", "cam.mkv", "cam.m3u8"));

TEST(OutputDiskTest, AFullDiskLeavesThePlaylistWhole) {
  TinyDisk disk;
  if (!disk.mounted()) GTEST_SKIP() << "mounting a file system needs root";
  OutputOptions options = output_to(disk / "cam.m3u8");
  options.options = {{"hls_time", "0.4"}};
  TestOutput output(options, TestOutput::WhenFull::kDrop);
  output.start();
  Clip clip = encode_clip({});
  output.push(clip);
  ASSERT_TRUE(comes_true([&] { return std::filesystem::exists(options.url); }));
  disk.fill();
  EXPECT_TRUE(comes_true([&] {
    clip = later(clip, 50);
    output.push(clip);
    return output.stats.paused.load();
  }));
  EXPECT_GT(output.dropped(PacketDrop::kDiskFull), 0u);
  EXPECT_TRUE(MediaPlaylist::parse(text_of(options.url))) << text_of(options.url);
}

TEST(OutputDiskTest, ASegmentThatAFullDiskLeavesIncompleteIsRemovedAndItsPacketsCount) {
  TinyDisk disk;
  if (!disk.mounted()) GTEST_SKIP() << "mounting a file system needs root";
  OutputOptions options = output_to(disk / "cam.m3u8");
  options.options = {{"hls_time", "3600"}};
  TestOutput output(options, TestOutput::WhenFull::kDrop);
  output.start();
  Clip clip = encode_clip({});
  std::size_t pushed = clip.packets.size();
  output.push(clip);
  ASSERT_TRUE(comes_true([&] { return output.stats.bytes > 0; }));
  ASSERT_TRUE(std::filesystem::exists(disk / "cam-0.ts.tmp"));
  disk.fill();
  EXPECT_TRUE(comes_true([&] {
    clip = later(clip, 50);
    output.push(clip);
    pushed += clip.packets.size();
    return output.stats.paused.load();
  }));
  output.finish();
  std::size_t written = 0;  // in the room that was made
  for (const std::string& name : names_in(disk / "")) {
    EXPECT_FALSE(name.ends_with(".tmp")) << name;
    if (name.ends_with(".ts")) written += decoded_frames(disk / name);
  }
  EXPECT_EQ(output.dropped() + written, pushed);
}

TEST(OutputDiskTest, AFullDiskIsRelievedOfWhatIsTooOld) {
  TinyDisk disk;
  if (!disk.mounted()) GTEST_SKIP() << "mounting a file system needs root";
  OutputOptions options = output_to(disk / "cam-%s.ts");
  options.segment =
      SegmentOptions{.length = 1h, .keep_age = 12h, .keep_bytes = {}, .keep_free = {}};
  TestOutput output(options, TestOutput::WhenFull::kDrop);
  output.start();
  Clip clip = encode_clip({.frames = 250});
  output.push(clip);
  ASSERT_TRUE(comes_true([&] { return output.stats.up && output.stats.queue_packets == 0; }));
  // What it deletes at its start is gone: a file that is old from now on goes when space is short.
  const std::string old = disk / "cam-1000000000.ts";
  write_file(old, Bytes(150'000, 1));
  std::filesystem::last_write_time(old, std::filesystem::file_time_type::clock::now() - 24h);
  disk.fill();
  EXPECT_TRUE(comes_true([&] {
    clip = later(clip, 250);
    output.push(clip);
    return output.dropped(PacketDrop::kDiskFull) > 0;
  }));
  EXPECT_TRUE(comes_true([&] { return !std::filesystem::exists(old); }));
}

class FileSizeLimitTest : public ::testing::TestWithParam<const char*> {};

TEST_P(FileSizeLimitTest, AFileThatMayNotGrowStaysPlayableAndTheNextOneFollows) {
  const TempFolder folder;
  TestOutput output(output_to(folder / (std::string("out.") + GetParam())));
  Clip clip = large_frames();
  const FileSizeLimit limit(4'000'000);  // a fragment of MP4 has more than 1.5 MB
  output.start();
  EXPECT_TRUE(comes_true([&] {
    output.push(clip);
    clip = later(clip, 50);
    return output.reconnects(IoFault::kIo) >= 2;
  }));
  output.stop.request_stop();
  output.join();
  EXPECT_GT(output.dropped(PacketDrop::kWriteFailed), 0u);
  const std::set<std::string> names = names_in(folder / "");
  EXPECT_GE(names.size(), 2u);
  for (const std::string& name : names) {
    EXPECT_FALSE(name.ends_with(".part")) << name;
    EXPECT_GE(decoded_frames(folder / name), 2u) << name;  // to the last byte
  }
}

INSTANTIATE_TEST_SUITE_P(Files, FileSizeLimitTest, ::testing::Values("mp4", "mkv", "ts"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace framelane
