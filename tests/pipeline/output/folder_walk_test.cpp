// Not built for ThreadSanitizer: what it tests has one thread.
#include "pipeline/output/folder_walk.hpp"

#include <gmock/gmock.h>

#include <cerrno>
#include <filesystem>

#include "tests/pipeline/output/old_files.hpp"
#include "tests/pipeline/source/media_files.hpp"

namespace framelane {
namespace {

using ::testing::ElementsAre;
using testing::TempFolder;
using testing::WithoutRootsRights;
using testing::write_aged;

TEST(FolderWalkTest, AFolderThatCannotBeReadIsNamedAndTheOthersAreRead) {
  const TempFolder folder;
  for (const char* name : {"2001/rec/1.ts.part", "2002/rec/2.ts.part", "2003/rec/3.ts.part"}) {
    write_aged(folder / name, {});
  }
  std::filesystem::permissions(folder / "2002/rec", std::filesystem::perms(0300));
  std::vector<UnreadableFolder> unreadable;
  std::vector<std::string> found;
  {
    const WithoutRootsRights ordinary;
    found = find_part_files(FilePattern(folder / "%Y/rec/%s.ts"), unreadable);
  }
  std::filesystem::permissions(folder / "2002/rec", std::filesystem::perms(0755));
  EXPECT_THAT(found, ElementsAre(folder / "2001/rec/1.ts.part", folder / "2003/rec/3.ts.part"));
  ASSERT_EQ(unreadable.size(), 1u);
  EXPECT_EQ(unreadable[0].path, folder / "2002/rec/");
  EXPECT_EQ(unreadable[0].error, EACCES);
}

TEST(FolderWalkTest, LinksToFoldersAreFollowed) {
  const TempFolder folder;
  write_aged(folder / "elsewhere/1.ts.part", {});
  std::filesystem::create_directory_symlink(folder / "elsewhere", folder / "2001");
  std::vector<UnreadableFolder> unreadable;
  EXPECT_THAT(find_part_files(FilePattern(folder / "%Y/%s.ts"), unreadable),
              ElementsAre(folder / "2001/1.ts.part"));
}

TEST(FolderWalkTest, WhatMayBeAFolderIsNamedIfItCannotBeLookedAt) {
  const TempFolder folder;
  write_aged(folder / "elsewhere/day/1.ts.part", {});
  std::filesystem::create_directory_symlink(folder / "elsewhere/day", folder / "2001");
  std::filesystem::permissions(folder / "elsewhere", std::filesystem::perms(0));
  std::vector<UnreadableFolder> unreadable;
  {
    const WithoutRootsRights ordinary;
    EXPECT_THAT(find_part_files(FilePattern(folder / "%Y/%s.ts"), unreadable), ElementsAre());
  }
  std::filesystem::permissions(folder / "elsewhere", std::filesystem::perms(0755));
  ASSERT_EQ(unreadable.size(), 1u);
  EXPECT_EQ(unreadable[0].path, folder / "2001/");
  EXPECT_EQ(unreadable[0].error, EACCES);
}

TEST(FolderWalkTest, WhatIsNotThereIsNoFault) {
  const TempFolder folder;
  std::filesystem::create_directory_symlink(folder / "gone", folder / "2002");
  write_aged(folder / "2001/rec", {});  // a file where a folder might be
  std::vector<UnreadableFolder> unreadable;
  EXPECT_THAT(find_part_files(FilePattern(folder / "%Y/rec/%s.ts"), unreadable), ElementsAre());
  EXPECT_THAT(find_part_files(FilePattern(folder / "none/%s.ts"), unreadable), ElementsAre());
  EXPECT_TRUE(unreadable.empty());
}

}  // namespace
}  // namespace framelane
