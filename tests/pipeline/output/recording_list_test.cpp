// Not built for ThreadSanitizer: what it tests has one thread.
#include "pipeline/output/recording_list.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <ctime>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tests/pipeline/output/output_fixture.hpp"

namespace framelane {
namespace {

using namespace testing;  // of framelane
using std::chrono::hours;
using std::chrono::system_clock;

bool never() { return false; }

std::chrono::milliseconds processor_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::milliseconds(time.tv_sec * 1000 + time.tv_nsec / 1'000'000);
}

timespec changed_at(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(stat(path.c_str(), &status), 0);
  return status.st_mtim;
}

void set_changed(const std::string& path, const timespec& time) {
  const std::array<timespec, 2> times{timespec{0, UTIME_OMIT}, time};
  EXPECT_EQ(utimensat(AT_FDCWD, path.c_str(), times.data(), 0), 0);
}

/// Where the first of these bytes begin.
std::size_t find(const Bytes& bytes, std::string_view what) {
  const auto found =
      std::search(bytes.begin(), bytes.end(), what.begin(), what.end(),
                  [](std::uint8_t a, char b) { return a == static_cast<std::uint8_t>(b); });
  EXPECT_NE(found, bytes.end());
  return static_cast<std::size_t>(found - bytes.begin());
}

void append(Bytes& to, std::string_view piece, std::size_t bytes) {
  to.reserve(to.size() + bytes);
  for (; bytes >= piece.size(); bytes -= piece.size()) {
    to.insert(to.end(), piece.begin(), piece.end());
  }
}

class RecordingListTest : public ::testing::Test {
 protected:
  RecordingList list(const OutputOptions& output) {
    const auto now = system_clock::now();
    return list_recordings(output, {now - hours(24), now + hours(1)}, now, cache_, never);
  }
  Bytes clip(const std::string& extension) {
    const std::string name = folder_ / ("clip." + extension);
    static const Clip pictures = encode_clip({});
    TestOutput(output_to(name)).write(pictures);
    return read_file(name);
  }
  /// Lists a file of these bytes, and says how long the processor took.
  std::chrono::milliseconds list_one(const std::string& extension, const Bytes& bytes,
                                     std::int64_t hole = 0) {
    const OutputOptions output = output_to(folder_ / ("%s." + extension));
    const std::string name = folder_ / ("1700000000." + extension);
    write_file(name, bytes);
    if (hole > 0) {
      std::filesystem::resize_file(name, bytes.size() + static_cast<std::uintmax_t>(hole));
    }
    const auto begin = processor_time();
    listed_ = list(output).recordings;
    return processor_time() - begin;
  }

  const TempFolder folder_;
  RecordingCache cache_;
  std::vector<Recording> listed_;
};

constexpr std::size_t kMuch = 20u << 20;
// Without the limit each of these files takes from most of a second to a minute.
constexpr std::chrono::milliseconds kSoon{300};

constexpr std::string_view kEmptyMoov("\0\0\0\010moov", 8);
constexpr std::string_view kEmptyMoof("\0\0\0\010moof", 8);
constexpr std::string_view kCluster("\x1f\x43\xb6\x75");

TEST_F(RecordingListTest, AFileOfVeryManyBoxesIsLeftOutSoon) {
  const Bytes mp4 = clip("mp4");
  for (const std::string_view box : {kEmptyMoov, kEmptyMoof}) {
    Bytes bytes(mp4.begin(), mp4.begin() + static_cast<std::ptrdiff_t>(find(mp4, "moov")) - 4);
    append(bytes, box, kMuch);
    EXPECT_LT(list_one("mp4", bytes), kSoon) << box;
    EXPECT_TRUE(listed_.empty()) << box;
    EXPECT_LT(list_one("mp4", bytes), kSoon) << box;  // it is remembered
  }
}

TEST_F(RecordingListTest, ARecordingWithVeryManyBoxesBehindItEndsWhenItWasWritten) {
  Bytes bytes = clip("mp4");
  append(bytes, kEmptyMoof, kMuch);
  EXPECT_LT(list_one("mp4", bytes), kSoon);
  ASSERT_EQ(listed_.size(), 1u);
  const auto written =
      system_clock::time_point(std::chrono::seconds(changed_at(folder_ / "1700000000.mp4").tv_sec));
  EXPECT_LT(std::chrono::abs(listed_[0].times.end - written), std::chrono::seconds(2));
}

TEST_F(RecordingListTest, AMatroskaFileOfZerosIsReadSoon) {
  const Bytes mkv = clip("mkv");
  const std::size_t first_cluster = find(mkv, kCluster);
  const Bytes header(mkv.begin(), mkv.begin() + static_cast<std::ptrdiff_t>(first_cluster));
  EXPECT_LT(list_one("mkv", header, 512LL << 20), kSoon);
  EXPECT_TRUE(listed_.empty());
  // As a crash of the system may leave it.
  Bytes bytes = mkv;
  bytes.resize(mkv.size() / 2);
  EXPECT_LT(list_one("mkv", bytes, 512LL << 20), kSoon);
  EXPECT_EQ(listed_.size(), 1u);
}

TEST_F(RecordingListTest, AnotherListReadsNothingAgain) {
  // The second one begins before the first one's end, with a gap of 8 s behind that: its packets
  // are looked at.
  std::filesystem::create_directory(folder_ / "rec");
  const OutputOptions output = output_to(folder_ / "rec/%s.mkv");
  const std::string source = "-v error -f lavfi -i testsrc=s=64x64:r=10:d=10 -c:v libx264 -bf 0 ";
  ffmpeg(source + "-metadata creation_time=2026-01-02T10:00:00Z -y " +
         (folder_ / "rec/1767348000.mkv"));
  ffmpeg(source +
         "-vf 'setpts=PTS+gte(T\\,5.05)*8/TB' -fps_mode passthrough "
         "-metadata creation_time=2026-01-02T10:00:05Z -y " +
         (folder_ / "rec/1767348005.mkv"));
  const auto from = system_clock::from_time_t(1767348000) - hours(1);
  const auto said = [&] {
    return list_recordings(output, {from, from + hours(2)}, system_clock::now(), cache_, never);
  };
  const RecordingList first = said();
  ASSERT_EQ(first.recordings.size(), 2u);
  ASSERT_EQ(first.gaps.size(), 2u);  // and behind the second one
  // The same files by their sizes and times, but nothing can be read in them any more.
  for (const auto& file : std::filesystem::directory_iterator(folder_ / "rec")) {
    const timespec changed = changed_at(file.path());
    const FileDescriptor opened(::open(file.path().c_str(), O_WRONLY | O_CLOEXEC));
    const std::string nothing(file.file_size(), '\0');
    EXPECT_EQ(pwrite(opened.get(), nothing.data(), nothing.size(), 0),
              static_cast<ssize_t>(nothing.size()));
    set_changed(file.path(), changed);
  }
  const RecordingList second = said();
  ASSERT_EQ(second.recordings.size(), 2u);
  EXPECT_EQ(second.recordings[1].times.end, first.recordings[1].times.end);
  ASSERT_EQ(second.gaps.size(), 2u);
  EXPECT_EQ(second.gaps[0].from, first.gaps[0].from);
  EXPECT_EQ(second.gaps[0].to, first.gaps[0].to);
}

RecordingCache::Key key_of(std::size_t number) { return {1, number, 1, 1}; }

TEST(RecordingCacheTest, WhatIsAskedForStaysAndTheRestGoes) {
  RecordingCache cache;
  RecordingTimes times;
  times.format = 7;
  const RecordingCache::Content content{times, std::nullopt};
  for (std::size_t i = 0; i < RecordingCache::kLeast; ++i) cache.add(key_of(i), content);
  for (std::size_t i = 0; i < RecordingCache::kLeast; ++i) {
    ASSERT_TRUE(cache.find(key_of(i))) << i;  // none is forgotten while there are no more
  }
  for (std::size_t i = 1; i <= 3 * RecordingCache::kLeast; ++i) {
    cache.add(key_of(RecordingCache::kLeast + i), content);
    ASSERT_TRUE(i % 1000 != 0 || cache.find(key_of(0))) << i;
  }
  const auto known = cache.find(key_of(0));
  ASSERT_TRUE(known && known->times);
  EXPECT_EQ(known->times->format, 7u);
  EXPECT_FALSE(cache.find(key_of(1)));
}

}  // namespace
}  // namespace framelane
