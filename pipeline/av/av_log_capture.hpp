#pragma once

#include <string>
#include <string_view>

namespace framelane {

/// While it lives, what FFmpeg reports as an error on this thread is kept here instead of being
/// logged: the caller puts it into the one message about the failure. One at a time per thread;
/// FFmpeg's own threads are not affected.
class AvLogCapture {
 public:
  AvLogCapture();
  ~AvLogCapture();
  AvLogCapture(const AvLogCapture&) = delete;
  AvLogCapture& operator=(const AvLogCapture&) = delete;

  /// The last error, without the component's prefix; `otherwise` when there was none.
  std::string reason(const std::string& otherwise) const;
  /// The first error of this thread's capture, the cause where others are its consequences; empty
  /// when there was none.
  static std::string first();

  /// For the process's FFmpeg log callback: keeps an error line ("[tcp @ 0x…] text"); false when
  /// nothing captures on this thread and the line is to be logged.
  static bool take(std::string_view line);

 private:
  std::string first_;
  std::string last_;
};

}  // namespace framelane
