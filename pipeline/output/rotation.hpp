#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "pipeline/output/file_pattern.hpp"
#include "pipeline/output/output_options.hpp"
#include "pipeline/output/part_file.hpp"

namespace framelane {

/// Timestamps are rounded to the time base: a file or segment may be this much shorter than
/// configured.
inline constexpr std::chrono::microseconds kCutTolerance{20'000};

/// When one output begins a new file, and what that file is called. Reads no clock. Not
/// thread-safe.
class Rotation {
 public:
  /// `path` is as FilePattern takes it. `segment` is the length of a file, or nothing if files are
  /// not cut by their length. Throws FeedError(kConfiguration).
  explicit Rotation(const std::string& path, std::optional<std::chrono::milliseconds> segment = {});

  const FilePattern& pattern() const { return pattern_; }

  /// True if a file ends at a keyframe that comes when it has lasted for `age`, in media time.
  bool cuts_at(std::chrono::microseconds age) const;

  /// Creates the file of which the first packet came at `start`, see PartFile::create(). A file
  /// that gets the same name as the last one gets a higher number, even if the last one was
  /// deleted.
  PartFile begin_file(std::chrono::system_clock::time_point start, Existing existing);

 private:
  FilePattern pattern_;
  std::optional<std::chrono::milliseconds> segment_;
  std::string last_name_;  // before it was numbered
  int last_number_ = 0;
};

}  // namespace framelane
