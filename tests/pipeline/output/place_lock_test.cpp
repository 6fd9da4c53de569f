// Not built for ThreadSanitizer: one thread uses it.
#include "pipeline/output/place_lock.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <string>

#include "pipeline/output/io_error.hpp"
#include "tests/pipeline/output/output_fixture.hpp"

namespace {

bool on_nfs = false;

}  // namespace

/// Takes the place of the C library's. As on NFS, if told so, an exclusive lock needs a descriptor
/// that can write (flock(2)).
extern "C" int flock(int fd, int operation) noexcept {
  const bool reads = (::fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY;
  if (on_nfs && reads && (operation & LOCK_EX) != 0) {
    errno = EBADF;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_flock, fd, operation));
}

namespace framelane {
namespace {

using namespace testing;  // of framelane
using ::testing::HasSubstr;
using ::testing::Not;

class PlaceLockTest : public ::testing::Test {
 protected:
  std::string refusal() const {
    try {
      const PlaceLock lock(place_);
    } catch (const IoError& error) {
      return error.what();
    }
    return {};
  }

  const TempFolder folder_;
  const std::string place_ = folder_ / "cam.m3u8";
  const std::string file_ = folder_ / ".cam.m3u8.lock";
};

TEST_F(PlaceLockTest, NamesItsOwner) {
  const PlaceLock lock(place_);
  EXPECT_THAT(text_of(file_), HasSubstr("process " + std::to_string(::getpid()) + " on "));
}

TEST_F(PlaceLockTest, KeepsOthersOutUntilItEnds) {
  std::optional<PlaceLock> lock(place_);
  EXPECT_THAT(refusal(), HasSubstr("another output of this process writes it"));
  lock.reset();
  EXPECT_EQ(refusal(), "");
  EXPECT_FALSE(std::filesystem::exists(file_));
}

TEST_F(PlaceLockTest, AFileThatADeadProcessLeftIsTaken) {
  write_file(file_, {'o', 'l', 'd', '\n'});
  const PlaceLock lock(place_);
  EXPECT_TRUE(lock.holds());
  EXPECT_THAT(text_of(file_), Not(HasSubstr("old")));
}

TEST_F(PlaceLockTest, TellsItsProcessFromOneOfTheSameName) {
  std::string lines;
  {
    const PlaceLock lock(place_);
    lines = text_of(file_);
  }
  const std::string other = lines.substr(0, lines.find('\n') + 1) + "1-2\n";
  write_file(file_, {other.begin(), other.end()});
  const int fd = ::open(file_.c_str(), O_RDWR);
  ASSERT_EQ(::flock(fd, LOCK_EX), 0);
  EXPECT_THAT(refusal(), HasSubstr("process " + std::to_string(::getpid()) + " on "));
  ::close(fd);
}

/// A lock file that can be read and not written.
class ForeignPlaceLockTest : public PlaceLockTest {
 protected:
  static constexpr int kTaken = 0;
  static constexpr int kRefused = 1;

  ForeignPlaceLockTest() {
    write_file(file_, {'o', 'l', 'd', '\n'});
    std::filesystem::permissions(file_, std::filesystem::perms{0444});
    std::filesystem::permissions(folder_ / "", std::filesystem::perms::all);
  }

  /// In a process for which the modes of files count.
  [[noreturn]] void take() const {
    constexpr uid_t kNobody = 65534;
    if (::geteuid() == 0 && ::setuid(kNobody) != 0) ::_exit(2);
    try {
      const PlaceLock lock(place_);
      const bool named = text_of(file_).starts_with("process " + std::to_string(::getpid()));
      ::_exit(lock.holds() && named ? kTaken : 3);
    } catch (const IoError& error) {
      ::_exit(std::string(error.what()).find("old writes it") == std::string::npos ? 4 : kRefused);
    }
  }
};

TEST_F(ForeignPlaceLockTest, IsReplacedByOneThatNamesTheOwner) {
  EXPECT_EXIT(take(), ::testing::ExitedWithCode(kTaken), "");
}

TEST_F(ForeignPlaceLockTest, KeepsOthersOutWhileItIsLocked) {
  const int fd = ::open(file_.c_str(), O_RDONLY);
  ASSERT_EQ(::flock(fd, LOCK_EX), 0);
  EXPECT_EXIT(take(), ::testing::ExitedWithCode(kRefused), "");
  on_nfs = true;
  EXPECT_EXIT(take(), ::testing::ExitedWithCode(kRefused), "");
  on_nfs = false;
  EXPECT_EQ(text_of(file_), "old\n");
  ::close(fd);
}

TEST_F(ForeignPlaceLockTest, IsReplacedOnNfsToo) {
  on_nfs = true;
  EXPECT_EXIT(take(), ::testing::ExitedWithCode(kTaken), "");
  on_nfs = false;
}

TEST_F(PlaceLockTest, HoldsNothingOnceItsFileIsRemoved) {
  const PlaceLock lock(place_);
  std::filesystem::remove(file_);
  EXPECT_FALSE(lock.holds());
  EXPECT_EQ(refusal(), "");
}

TEST_F(PlaceLockTest, WhatCannotBeLockedIsAnError) {
  const std::string nowhere = folder_ / "nowhere/cam.m3u8";
  EXPECT_THROW(PlaceLock{nowhere}, IoError);
}

}  // namespace
}  // namespace framelane
