#pragma once

#include <string>

#include "pipeline/base/failure.hpp"

namespace framelane {

/// An IoError for want of space on the disk, or of quota: deleting old files may help.
class DiskFull : public IoError {
 public:
  explicit DiskFull(const std::string& message) : IoError(IoFault::kIo, message) {}
};

/// Throws what an FFmpeg error code stands for: DiskFull or an IoError.
[[noreturn]] void throw_io_error(int averror, const std::string& message);
/// The same for a file or folder: what the system denies there is no failed login, and the message
/// says what helps.
[[noreturn]] void throw_file_error(int averror, const std::string& message);
/// The same for an errno, with the text "cannot DOING PATH: …".
[[noreturn]] void throw_cannot(const std::string& doing, const std::string& path, int error);

}  // namespace framelane
