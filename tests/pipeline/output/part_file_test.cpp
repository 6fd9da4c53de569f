// Not built for ThreadSanitizer: what it tests has one thread.
#include "pipeline/output/part_file.hpp"

#include <gmock/gmock.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "pipeline/base/failure.hpp"
#include "tests/pipeline/source/media_files.hpp"

namespace framelane {
namespace {

using namespace testing;  // of framelane
using ::testing::ElementsAre;

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
