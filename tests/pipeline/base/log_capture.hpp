#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

namespace framelane::testing {

/// Captures everything that is logged while this object exists.
class LogCapture {
 public:
  LogCapture();
  ~LogCapture();
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;

  /// How often `what` was logged. No other thread may log during the call.
  std::size_t count(std::string_view what) const;

 private:
  struct Log;  // keeps spdlog out of this header
  const std::unique_ptr<Log> log_;
};

}  // namespace framelane::testing
