#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "pipeline/base/bus_guard.hpp"
#include "pipeline/base/file_descriptor.hpp"
#include "pipeline/frames/host_registration.hpp"

namespace framelane {

/// A producer's shared memory (shm_open), mapped for reading alone, and registered with the GPU.
/// Any thread may read it. At least kReadableBehind bytes behind it can be read too, as zeros.
class SharedArea {
 public:
  static constexpr std::size_t kReadableBehind = 4096;

  /// Maps the first `bytes` of what has this name, "/NAME". `owner`: whose it must be; root may
  /// name what it likes. Throws IoError: it is not there, may not be read, is smaller, is not that
  /// user's, or is no memory; FeedError(kMemory): no memory, or the GPU cannot lock it.
  SharedArea(const std::string& name, std::size_t bytes, uid_t owner);
  ~SharedArea() { mapping_.unregistered = registration_.end(); }
  SharedArea(const SharedArea&) = delete;
  SharedArea& operator=(const SharedArea&) = delete;

  const std::string& name() const { return name_; }
  const std::uint8_t* data() const { return mapping_.data; }
  std::size_t bytes() const { return bytes_; }
  /// True once what lies there is no longer what the producer sent: it has taken some of it away,
  /// which reads as zeros.
  const std::atomic<bool>& spoiled() const { return guard_.spoiled(); }
  /// True if a process holds a lock on the area, as producers with framelane_capture.h do while
  /// they may write to it.
  bool locked() const;

 private:
  struct Mapping {
    Mapping(const std::string& name, std::size_t bytes, uid_t owner);
    ~Mapping();
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;

    const FileDescriptor file;
    std::uint8_t* data = nullptr;
    std::size_t size = 0;  // whole pages, without the pages behind
    bool unregistered = true;
  };

  const std::string name_;
  const std::size_t bytes_;
  // In this order: unregistered first, unmapped last.
  Mapping mapping_;
  const BusGuard guard_;
  HostRegistration registration_;
};

}  // namespace framelane
