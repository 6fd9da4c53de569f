#pragma once

#include <string>
#include <utility>

namespace framelane {

/// True if `path` still names the open file: others may have renamed, removed or replaced it.
bool is_at(int fd, const std::string& path);

/// Says to other processes, and to other outputs of this one, that a file is being written: a
/// hidden file beside it, ".NAME.lock", which is locked and names the host and the process. A file
/// that nobody has locked any more is taken, whoever left it. Not thread-safe. Calls block as long
/// as the file system does.
class PlaceLock {
 public:
  /// Throws IoError, which names the owner, if somebody else has it, and if the file cannot be
  /// made. Where the file system has no locks, nobody is kept out.
  explicit PlaceLock(const std::string& path);
  PlaceLock(PlaceLock&& other) noexcept
      : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}
  PlaceLock& operator=(PlaceLock&&) = delete;
  ~PlaceLock();

  /// False if the file has been removed meanwhile, so that others would find the place free.
  bool holds() const { return is_at(fd_, path_); }

 private:
  std::string path_;
  int fd_ = -1;
};

}  // namespace framelane
