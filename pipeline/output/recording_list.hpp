#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "pipeline/output/output_options.hpp"
#include "pipeline/output/recording_file.hpp"

namespace framelane {

/// What was read in recordings, so that it is read once. Any thread.
class RecordingCache {
 public:
  /// A file as it was when it was read.
  using Key = std::tuple<dev_t, ino_t, off_t, std::int64_t>;  ///< device, inode, size, changed (ns)
  struct Next {
    std::chrono::microseconds after;
    std::optional<std::chrono::microseconds> at;
  };
  struct Content {
    std::optional<RecordingTimes> times;  ///< nothing if nothing in the file can be read
    std::optional<Next> next;             ///< what RecordingFile::next_after() gave last
  };
  /// The files that were found or added last stay: these at least, and twice as many at most.
  static constexpr std::size_t kLeast = 1u << 16;

  std::optional<Content> find(const Key& key);
  void add(const Key& key, const Content& content);

 private:
  void keep(const Key& key, const Content& content);

  std::mutex mutex_;  // guards what follows
  std::map<Key, Content> recent_;
  std::map<Key, Content> older_;  // what recent_ was when it was full the last time
};

struct TimeSpan {
  std::chrono::system_clock::time_point from;
  std::chrono::system_clock::time_point to;
};

struct Recording {
  std::string file;  ///< the name that it has when it is complete, from the fixed folder on
  RecordingTimes times;
  std::int64_t bytes;
  bool complete;
  RecordingCache::Key key;  ///< of the file as it is listed
};

/// What two recordings have in common for less than this may be an error of their times.
inline std::chrono::milliseconds overlap_tolerance(const Recording& a, const Recording& b) {
  return std::chrono::milliseconds(a.times.exact && b.times.exact ? 100 : 1500);
}

struct RecordingList {
  std::vector<Recording> recordings;  ///< that have something of the span, by their end
  std::vector<TimeSpan> gaps;         ///< inside the span
};

/// What is asked for cannot be made of the recordings: why, and what helps. The code is for
/// programs.
struct RecordingsRefused : std::runtime_error {
  RecordingsRefused(std::string error_code, const std::string& message)
      : std::runtime_error(message), code(std::move(error_code)) {}
  std::string code;  ///< too_large, no_recording, format_changes, not_in_mp4
};

/// What is missing for longer than this is a gap.
inline constexpr std::chrono::seconds kGapTolerance{2};
/// What was taken since then may not be in a file yet.
inline constexpr std::chrono::seconds kStillWritten{10};
/// The processor time for one file. One that is damaged, or made for it, could take minutes.
inline constexpr std::chrono::milliseconds kMostWork{40};
/// Of recordings in one list.
inline constexpr std::size_t kMostRecordings = 50'000;

/// Opens a recording for reading, also one that is still written, under the name that it will have.
/// -1 with errno if the output has no such file, see open_beneath().
FileDescriptor open_recording(const OutputOptions& output, const std::string& file);

/// An output's recordings, complete or not, by what is in them. Files to which a link leads, and
/// those in which nothing can be read, are left out. A time before the first recording is no gap if
/// there is no earlier one. A file that takes kMostWork to read, as a long one without an index
/// may, ends when it was written last. Throws IoError, also if the reading ends, and
/// RecordingsRefused if there are more than kMostRecordings; what was read by then stays in the
/// cache. Blocks as long as the file system does.
RecordingList list_recordings(const OutputOptions& output, const TimeSpan& span,
                              std::chrono::system_clock::time_point now, RecordingCache& cache,
                              const ReadingEnds& ends);

}  // namespace framelane
