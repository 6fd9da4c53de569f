#pragma once

#include <linux/capability.h>

#include <chrono>
#include <cstddef>
#include <string>

namespace framelane::testing {

/// A temporary folder in memory, for many files. It is removed with this object.
class MemoryFolder {
 public:
  MemoryFolder();
  ~MemoryFolder();
  MemoryFolder(const MemoryFolder&) = delete;
  MemoryFolder& operator=(const MemoryFolder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_ = "/dev/shm/framelane-XXXXXX";
};

/// Writes a file of this size, and the folders to it. Its last change was at this time.
void write_aged(const std::string& path, std::chrono::system_clock::time_point changed,
                std::size_t bytes = 1);

/// While it lives, this thread obeys the permissions of files, as root otherwise need not.
class WithoutRootsRights {
 public:
  WithoutRootsRights();
  ~WithoutRootsRights();
  WithoutRootsRights(const WithoutRootsRights&) = delete;
  WithoutRootsRights& operator=(const WithoutRootsRights&) = delete;

 private:
  __user_cap_header_struct header_{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct before_[2]{};
};

}  // namespace framelane::testing
