#pragma once

#include <string>

#include "pipeline/base/failure.hpp"

namespace framelane {

/// A file descriptor, or -1. Closes it, unless it is only borrowed.
class Descriptor {
 public:
  explicit Descriptor(int fd, bool owned = true) : fd_(fd), owned_(owned) {}
  ~Descriptor();
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
  const bool owned_;
};

/// What helps if the system does not let this process open `path` for reading, as the end of a
/// message; empty for other errno values.
std::string denial_remedy(int error, const std::string& path);

/// What a source throws when a system call fails with this errno value.
IoError io_error(int error, const std::string& what);

}  // namespace framelane
