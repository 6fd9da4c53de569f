#pragma once

#include <functional>
#include <stop_token>

#include "pipeline/base/file_descriptor.hpp"

namespace framelane {

/// Becomes readable, for poll(2), when a stop is asked for, and stays so.
class StopEvent {
 public:
  /// Throws IoError if the process may open no more files.
  explicit StopEvent(const std::stop_token& stop);
  int fd() const { return event_.get(); }

 private:
  const FileDescriptor event_;
  const std::stop_callback<std::function<void()>> on_stop_;
};

}  // namespace framelane
