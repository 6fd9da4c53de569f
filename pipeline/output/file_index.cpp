#include "pipeline/output/file_index.hpp"

namespace framelane {

void FileIndex::add(const std::string& path, const State& state) {
  remove(path);
  by_age_[state.device].insert(&*files_.insert({path, state, pass_}).first);
  bytes_ += state.bytes;
}

void FileIndex::remove(std::string_view path) {
  if (const auto file = files_.find(path); file != files_.end()) erase(file);
}

void FileIndex::clear() {
  by_age_.clear();
  aside_.clear();
  files_.clear();
  bytes_ = 0;
}

FileIndex::Files::iterator FileIndex::erase(Files::iterator file) {
  bytes_ -= file->state.bytes;
  by_age_[file->state.device].erase(&*file);
  aside_.erase(&*file);
  return files_.erase(file);
}

bool FileIndex::mark_seen(std::string_view path) {
  const auto file = files_.find(path);
  if (file == files_.end()) return false;
  file->pass = pass_;
  return true;
}

const FileIndex::File* FileIndex::oldest() const {
  const File* oldest = nullptr;
  for (const auto& [device, files] : by_age_) {
    const File* const here = this->oldest(device);
    if (here != nullptr && (oldest == nullptr || is_older(*here, *oldest))) oldest = here;
  }
  return oldest;
}

const FileIndex::File* FileIndex::oldest(dev_t device) const {
  const auto files = by_age_.find(device);
  if (files == by_age_.end() || files->second.empty()) return nullptr;
  const File* const oldest = *files->second.begin();
  return oldest == newest() ? nullptr : oldest;
}

const FileIndex::File* FileIndex::newest() const {
  const File* newest = nullptr;
  for (const auto& [device, files] : by_age_) {
    if (files.empty()) continue;
    const File* const here = *files.rbegin();
    if (newest == nullptr || is_older(*newest, *here)) newest = here;
  }
  return newest;
}

const FileIndex::File* FileIndex::next(const File& file) const {
  const ByAge& files = by_age_.at(file.state.device);
  const auto next = files.upper_bound(&file);
  return next == files.end() ? nullptr : *next;
}

void FileIndex::put_aside(const File& file) {
  aside_.insert(by_age_[file.state.device].extract(&file));
}

void FileIndex::put_back_all() {
  for (const File* const file : aside_) by_age_[file->state.device].insert(file);
  aside_.clear();
}

void FileIndex::forget_unseen(const std::function<bool(std::string_view)>& stays) {
  for (auto file = files_.begin(); file != files_.end();) {
    if (file->pass == pass_ || stays(file->path)) {
      ++file;
    } else {
      file = erase(file);
    }
  }
}

}  // namespace framelane
