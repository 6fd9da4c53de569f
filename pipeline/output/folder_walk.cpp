#include "pipeline/output/folder_walk.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

namespace framelane {

bool is_no_folder(int error) { return error == ENOENT || error == ENOTDIR; }

FolderWalk::FolderWalk(const FilePattern& pattern, Files files) : pattern_(pattern), files_(files) {
  add("", 0);
}

void FolderWalk::add(std::string path, std::size_t depth) {
  const std::vector<FilePattern::Folder>& folders = pattern_.folders();
  for (; depth < folders.size() && !folders[depth].shape.varies(); ++depth) {
    path += folders[depth].literal + '/';
  }
  waiting_.push_back({std::move(path), depth});
}

FolderWalk::Found FolderWalk::next() {
  if (!folder_) return waiting_.empty() ? Found::kEnd : open();
  errno = 0;
  if (const dirent* const entry = readdir(folder_.get())) return examine(*entry);
  error_ = errno;
  path_ = place_.path;
  folder_.reset();
  return error_ == 0 ? Found::kNothing : Found::kUnreadable;
}

FolderWalk::Found FolderWalk::open() {
  place_ = std::move(waiting_.back());
  waiting_.pop_back();
  folder_.reset(opendir(place_.path.empty() ? "." : place_.path.c_str()));
  error_ = errno;
  path_ = place_.path;
  return folder_ || is_no_folder(error_) ? Found::kNothing : Found::kUnreadable;
}

FolderWalk::Found FolderWalk::examine(const dirent& entry) {
  std::string_view name = entry.d_name;
  if (place_.depth < pattern_.folders().size()) {
    if (!pattern_.folders()[place_.depth].shape.fits(name)) return Found::kNothing;
    path_ = place_.path + entry.d_name + '/';
    error_ = folder_error(entry);
    if (error_ == 0) add(path_, place_.depth + 1);
    return error_ == 0 || is_no_folder(error_) ? Found::kNothing : Found::kUnreadable;
  }
  if (files_ == Files::kPart) {
    if (!name.ends_with(kPartSuffix)) return Found::kNothing;
    name.remove_suffix(kPartSuffix.size());
  }
  if (entry.d_type == DT_DIR || !pattern_.is_name(name)) return Found::kNothing;
  path_ = place_.path + entry.d_name;
  return Found::kFile;
}

int FolderWalk::folder_error(const dirent& entry) const {
  struct stat status {};
  if (entry.d_type == DT_UNKNOWN || entry.d_type == DT_LNK) {
    if (fstatat(dirfd(folder_.get()), entry.d_name, &status, 0) != 0) return errno;
    return S_ISDIR(status.st_mode) ? 0 : ENOTDIR;
  }
  return entry.d_type == DT_DIR ? 0 : ENOTDIR;
}

std::vector<std::string> find_part_files(const FilePattern& pattern,
                                         std::vector<UnreadableFolder>& unreadable) {
  std::vector<std::string> found;
  FolderWalk walk(pattern, FolderWalk::Files::kPart);
  for (auto what = walk.next(); what != FolderWalk::Found::kEnd; what = walk.next()) {
    std::error_code gone;
    if (what == FolderWalk::Found::kUnreadable) {
      unreadable.push_back({walk.path(), walk.error()});
    } else if (what == FolderWalk::Found::kFile &&
               std::filesystem::is_regular_file(walk.path(), gone)) {
      found.push_back(walk.path());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace framelane
