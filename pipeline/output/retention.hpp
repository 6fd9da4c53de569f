#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "pipeline/measure/retention_stats.hpp"
#include "pipeline/output/disk_retention.hpp"
#include "pipeline/output/file_pattern.hpp"
#include "pipeline/output/output_options.hpp"

namespace framelane {

class KeptFiles;

/// Deletes the old files of all outputs of the process, as their options say, with one thread for
/// each file system: one that hangs holds up nothing else. Any thread may call all functions; they
/// return at once, unless they say otherwise.
class Retention {
 public:
  /// A thread that has more to delete when a stop comes may go on for this long.
  static constexpr std::chrono::milliseconds kLastTurns{250};
  /// A thread that has not ended this long after a stop is in a call that hangs.
  static constexpr std::chrono::milliseconds kStopTime{500};

  explicit Retention(SpaceOf space_of = disk_space);
  /// Stops.
  ~Retention();
  Retention(const Retention&) = delete;
  Retention& operator=(const Retention&) = delete;

  /// Begins to delete the files that the pattern could have named, until the result is destroyed.
  /// An output that was started anew is recognised by its `stats`: its files are known already.
  /// `subject` begins its lines in the log. Asks which file system it is, so it blocks as long as
  /// that one does. If the system refuses a thread, that shows in `stats`, and watch() tries again.
  std::unique_ptr<KeptFiles> keep(const FilePattern& pattern, const SegmentOptions& keep,
                                  const std::string& subject,
                                  const std::shared_ptr<RetentionStats>& stats);

  /// Counts and logs calls that hang, and starts threads that were refused. To be called a few
  /// times a second.
  void watch();
  /// Finishes what is known to be due, for kLastTurns at most, and ends the threads. Blocks for
  /// kStopTime at most: threads that have not ended then are abandoned.
  void stop();

 private:
  friend class KeptFiles;
  struct Output;
  struct Disk;
  class Threads;
  const std::shared_ptr<Threads> threads_;  // which share its ownership
};

/// What one output tells Retention. Any thread; returns at once.
class KeptFiles {
 public:
  KeptFiles(std::shared_ptr<Retention::Threads> threads, std::shared_ptr<Retention::Output> output,
            std::uint64_t user);
  ~KeptFiles();
  KeptFiles(const KeptFiles&) = delete;
  KeptFiles& operator=(const KeptFiles&) = delete;

  /// The output has completed this file.
  void completed(const std::string& path);
  /// Writing failed: there may be files that were not completed in order, and room may be needed.
  void look_again(bool disk_is_full);

 private:
  const std::shared_ptr<Retention::Threads> threads_;
  const std::shared_ptr<Retention::Output> output_;
  const std::uint64_t user_;
};

}  // namespace framelane
