#pragma once

#include <chrono>
#include <ctime>
#include <optional>
#include <string>

namespace framelane {

/// A text with strftime's fields, which tell local time (TZ) to the second. One thread at a time.
class ClockText {
 public:
  /// Requires !why_not(pattern).
  explicit ClockText(std::string pattern);
  /// The text at that time. Stays until the next call.
  const std::string& at(std::chrono::system_clock::time_point time);

  /// Why this is no such text, as the end of a sentence: "ends in a single %; write %% for a
  /// percent sign".
  static std::optional<std::string> why_not(const std::string& pattern);

 private:
  const std::string pattern_;
  const bool changes_;
  std::optional<std::time_t> second_;
  std::string text_;
};

}  // namespace framelane
