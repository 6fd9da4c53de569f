#pragma once

#include <dirent.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/output/file_pattern.hpp"

namespace framelane {

/// Looks through the folders that a pattern can name, one entry at a time, for the pattern's files.
/// Each call blocks as long as the file system does. Not thread-safe.
class FolderWalk {
 public:
  enum class Files { kComplete, kPart };
  /// `pattern` must outlive it.
  FolderWalk(const FilePattern& pattern, Files files);

  enum class Found {
    kFile,        ///< path() has a name of the pattern; it may also be something else than a file
    kNothing,     ///< of interest, yet
    kUnreadable,  ///< path() is a folder that cannot be read, or not to its end, or something that
                  ///< may be such a folder: see error()
    kEnd,
  };
  Found next();

  const std::string& path() const { return path_; }
  int error() const { return error_; }  ///< errno's

 private:
  struct Close {
    void operator()(DIR* folder) const { closedir(folder); }
  };
  /// A folder: its path with a '/' at the end, and how many of the pattern's folders that are.
  struct Place {
    std::string path;
    std::size_t depth;
  };

  void add(std::string path, std::size_t depth);
  Found open();
  Found examine(const dirent& entry);
  /// 0 if the entry is a folder, ENOTDIR if it is not, or why that cannot be told.
  int folder_error(const dirent& entry) const;

  const FilePattern& pattern_;
  const Files files_;
  std::vector<Place> waiting_;
  Place place_;
  std::unique_ptr<DIR, Close> folder_;  // the place's; null before and after
  std::string path_;
  int error_ = 0;
};

/// Whether `error`, errno's, says that there is no such folder. Any other error leaves that open.
bool is_no_folder(int error);

struct UnreadableFolder {
  std::string path;
  int error;  ///< errno's
};

/// The files on disk that are still NAME.part and of which the pattern could have made NAME. In
/// their names' order. Folders that cannot be read are added to `unreadable`.
std::vector<std::string> find_part_files(const FilePattern& pattern,
                                         std::vector<UnreadableFolder>& unreadable);

}  // namespace framelane
