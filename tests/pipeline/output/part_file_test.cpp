// Not built for ThreadSanitizer: what it tests has one thread.
#include "pipeline/output/part_file.hpp"

#include <gmock/gmock.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "pipeline/base/failure.hpp"
#include "pipeline/output/io_error.hpp"
#include "tests/pipeline/output/old_files.hpp"
#include "tests/pipeline/source/media_files.hpp"

namespace framelane {
namespace {

using namespace testing;  // of framelane
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(PartFileTest, AFileThatSomebodyWritesIsNotWrittenOver) {
  const TempFolder folder;
  PartFile first = PartFile::create(folder / "out.mp4", 1, Existing::kReplace);
  write_file(first.path(), {1, 2, 3});
  for (const Existing existing : {Existing::kReplace, Existing::kRefuse}) {
    EXPECT_THROW(PartFile::create(folder / "out.mp4", 1, existing), IoError);
  }
  EXPECT_EQ(first.complete(false), folder / "out.mp4");
  EXPECT_EQ(read_file(folder / "out.mp4"), (Bytes{1, 2, 3}));
}

TEST(PartFileTest, WhatMayNotBeWrittenIsToldWithTheRemedy) {
  const TempFolder folder;
  std::filesystem::permissions(folder / "", std::filesystem::perms(0555));
  std::string why;
  try {
    const WithoutRootsRights denied;
    PartFile::create(folder / "out.mp4", 1, Existing::kReplace);
  } catch (const IoError& error) {
    why = error.what();
  }
  EXPECT_EQ(why, "cannot create " + (folder / "out.mp4.part") +
                     ": Permission denied; let framelane's user (uid " +
                     std::to_string(::geteuid()) +
                     ") write there, by owner, group or mode of the folder");
  try {
    throw_cannot("create", "/srv/rec/out.mp4", EROFS);
  } catch (const IoError& error) {
    why = error.what();
  }
  EXPECT_THAT(why, HasSubstr("Read-only file system; name the folder in ReadWritePaths="));
  std::filesystem::permissions(folder / "", std::filesystem::perms(0755));
}

// As retention does, which may find the folder before the file is in it.
TEST(PartFileTest, AFolderThatIsRemovedWhileItIsEmptyIsMadeAgain) {
  const TempFolder folder;
  const std::string day = folder / "day";
  for (int i = 0; i < 500; ++i) {
    {
      std::atomic<bool> begun{false};
      const std::jthread remover([&](const std::stop_token& stop) {
        begun = true;
        begun.notify_all();
        while (rmdir(day.c_str()) != 0 && errno == ENOENT && !stop.stop_requested()) {
        }
      });
      begun.wait(false);
      EXPECT_NO_THROW(PartFile::create(day + "/out.mp4", 1, Existing::kNumber));
    }
    std::filesystem::remove_all(day);
  }
}

/// What fsync() was called for, in order: a file by its name at that time, a folder by its only
/// file.
thread_local std::vector<std::string>* synced = nullptr;

}  // namespace
}  // namespace framelane

/// Replaces the C library's function: notes the name and makes the system call.
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

TEST(PartFileTest, BothAFilesDataAndItsNameAreOnTheDiskWhenItIsComplete) {
  const TempFolder folder;
  PartFile file = PartFile::create(folder / "out.mp4", 1, Existing::kNumber);
  std::vector<std::string> order;
  synced = &order;
  file.complete(true);
  synced = nullptr;
  EXPECT_THAT(order, ElementsAre("out.mp4.part", "out.mp4"));
}

}  // namespace
}  // namespace framelane
