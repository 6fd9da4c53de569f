#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>

#include "pipeline/base/fault_log.hpp"
#include "pipeline/output/file_pattern.hpp"
#include "pipeline/output/output_options.hpp"

namespace framelane {

/// Files that could not be deleted.
struct Undeletable {
  std::size_t files = 0;
  std::string first;  ///< the path of one, redacted, and why
};

/// Deletes complete files that the pattern names, oldest first, until `keep` is met at the time
/// `now`. The newest file stays whatever its size and age. Returns what should have gone and is
/// still there. `working` is called before each file, of which there may be many. Blocks as long as
/// the file system does.
Undeletable enforce_retention(const FilePattern& pattern, const SegmentOptions& keep,
                              std::filesystem::file_time_type now,
                              const std::function<void()>& working);

/// When one output's old files are deleted, and what is logged when that fails. One thread.
class Retention {
 public:
  using Clock = std::chrono::steady_clock;

  /// `pattern` and `keep` must outlive it; `subject` begins its lines in the log.
  Retention(const FilePattern& pattern, const SegmentOptions& keep, const std::string& subject);

  /// True if files may have become too old since the last enforce(): they do while nothing is
  /// written, too. Asked as often as the caller likes; says yes at most once a minute or, where
  /// files are kept for less, once in that time.
  bool due(Clock::time_point now) const;
  /// enforce_retention(), and logs files that cannot be deleted: once, until all could be.
  void enforce(Clock::time_point now, const std::function<void()>& working);

 private:
  const FilePattern& pattern_;
  const SegmentOptions& keep_;
  FaultLog faults_;
  Clock::time_point enforced_at_;
};

}  // namespace framelane
