#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

#include "pipeline/base/clock_reading.hpp"
#include "pipeline/base/fault_log.hpp"
#include "pipeline/output/file_pattern.hpp"
#include "pipeline/output/output_options.hpp"

namespace framelane {

/// Files that should have been deleted and could not be.
struct Undeletable {
  std::size_t files = 0;
  std::string first;  ///< the path of one, redacted, and the reason
};

/// Deletes complete files that the pattern could have named, oldest first, until the rest is what
/// `keep` allows at `now`. The newest file stays whatever its size and age. `working` is called
/// before each file: there may be many. Blocks as long as the file system does.
Undeletable enforce_retention(const FilePattern& pattern, const SegmentOptions& keep,
                              std::chrono::system_clock::time_point now,
                              const std::function<void()>& working);

/// Decides when one output's old files are deleted, and logs if that fails. Reads no clock. Not
/// thread-safe.
class Retention {
 public:
  /// `pattern` and `keep` must outlive it. `subject` begins its lines in the log.
  Retention(const FilePattern& pattern, const SegmentOptions& keep, const std::string& subject);

  /// True a minute after the last enforce(), or after the keep age if that is shorter: files grow
  /// old even while none is written.
  bool due(std::chrono::steady_clock::time_point now) const;

  /// Calls enforce_retention(). Warns once about files that cannot be deleted, until all could be.
  void enforce(const ClockReading& now, const std::function<void()>& working);

 private:
  const FilePattern& pattern_;
  const SegmentOptions& keep_;
  FaultLog faults_;
  std::chrono::steady_clock::time_point enforced_at_;
};

}  // namespace framelane
