#pragma once

#include <string>
#include <string_view>

namespace framelane {

/// While it lives, errors that FFmpeg reports on this thread are stored here instead of being
/// logged, so that the caller can put them into its one message about the failure. One at a time
/// per thread; what FFmpeg's own threads report is logged as usual.
class AvLogCapture {
 public:
  AvLogCapture();
  ~AvLogCapture();
  AvLogCapture(const AvLogCapture&) = delete;
  AvLogCapture& operator=(const AvLogCapture&) = delete;

  /// The last error, without the prefix that names its component; `otherwise` when there was none.
  std::string reason(const std::string& otherwise) const;
  /// The first error in this thread's capture: the cause, if the others follow from it. Empty when
  /// there was none, or nothing captures.
  static std::string first();

  /// For the process's FFmpeg log callback: stores an error line ("[tcp @ 0x…] text"). False when
  /// nothing captures on this thread: the line is to be logged.
  static bool take(std::string_view line);

 private:
  std::string first_;
  std::string last_;
};

}  // namespace framelane
