#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/av/interrupt.hpp"
#include "pipeline/base/clock_reading.hpp"
#include "pipeline/base/fault_log.hpp"
#include "pipeline/measure/retention_stats.hpp"
#include "pipeline/output/file_index.hpp"
#include "pipeline/output/file_pattern.hpp"
#include "pipeline/output/folder_walk.hpp"
#include "pipeline/output/output_options.hpp"

namespace framelane {

/// One output's complete files, and which of them go. Knows them from one look at the disk, from
/// what it is told, and from passes: now and then it lists the folders again, a part in each turn,
/// and looks at names alone, so that only a file that it does not know costs a call of its own.
///
/// Reads no clock. Not thread-safe. What takes `calls` blocks as long as the file system does, and
/// arms it anew before each call.
class OutputRetention {
 public:
  using Steady = std::chrono::steady_clock;
  /// The longest time between two passes. It is shorter if `keep_age` is; it is longer if a pass
  /// takes more than a fiftieth of it.
  static constexpr std::chrono::seconds kPassEvery{60};
  /// A call that takes longer hangs.
  static constexpr std::chrono::seconds kCallLimit{5};
  /// So much is done in one turn: entries of folders that are read, files that are deleted.
  static constexpr int kEntriesPerTurn = 256;
  static constexpr int kDeletionsPerTurn = 32;

  /// `subject` begins its lines in the log.
  OutputRetention(const FilePattern& pattern, const SegmentOptions& keep,
                  const std::string& subject, std::shared_ptr<RetentionStats> stats);
  OutputRetention(const OutputRetention&) = delete;
  OutputRetention& operator=(const OutputRetention&) = delete;

  const FilePattern& pattern() const { return pattern_; }
  const SegmentOptions& keep() const { return keep_; }
  RetentionStats& stats() { return *stats_; }
  /// True if nobody else has the stats any more.
  bool is_forgotten() const { return stats_.use_count() == 1; }

  /// Finds the file system: that of the last folder that exists, of those before the first one
  /// whose name varies. It may be another one later, when a disk is mounted there: then the files
  /// that were known are not there any more, and are forgotten. If the file system does not
  /// answer, it is taken to be the one that it was. True if it is another one than before.
  bool locate();
  dev_t device() const { return device_; }  ///< 0 until it has been found
  const std::string& folder() const { return folder_; }

  /// The output has completed this file.
  void completed(const std::string& path, Interrupt& calls);
  /// The next pass begins at once.
  void look_again() { pass_due_ = {}; }
  /// Goes on with a pass if one is due. True if there is more to read at once.
  bool read_some(const ClockReading& now, Interrupt& calls);
  /// True once the first pass has come to its end: the oldest file is known.
  bool known() const { return known_; }

  /// Deletes files that are too old or too much. True if there are more to delete at once.
  bool delete_some(const ClockReading& now, Interrupt& calls);
  /// The file to delete next for room on this file system; null if all have to stay. The newest
  /// file always stays, and so do those in folders on others (links, mounts).
  const FileIndex::File* oldest(dev_t device) const { return files_.oldest(device); }
  /// Deletes a known file, if it still is what is known of it: else what it is now is taken over.
  /// False if it was not deleted, or was gone: another one is the oldest then, or this is younger.
  bool remove(const FileIndex::File& file, Interrupt& calls);

  /// Logs what failed, and that it works again. To be called when there is no more to do at once.
  void report(const ClockReading& now);
  /// How long nothing has to be done, if no file is completed.
  Steady::duration idle_for(const ClockReading& now) const;

  /// What has been asked of the file system, since the beginning.
  struct Work {
    std::uint64_t entries = 0;   ///< of folders
    std::uint64_t examined = 0;  ///< files of which size and age were asked
    std::uint64_t deletions = 0;
  };
  const Work& work() const { return work_; }

 private:
  bool too_many(const ClockReading& now) const;
  void examine(const std::string& path);
  void note_unreadable(const std::string& path, int error);
  void end_pass(const ClockReading& now);

  const FilePattern pattern_;
  const SegmentOptions keep_;
  const std::shared_ptr<RetentionStats> stats_;
  FaultLog listing_faults_;
  FaultLog deletion_faults_;
  FileIndex files_;
  Work work_;

  dev_t device_ = 0;
  std::string folder_;

  std::optional<FolderWalk> walk_;  // while a pass goes on
  Steady::time_point pass_begun_;
  Steady::time_point pass_due_;
  bool known_ = false;
  std::vector<std::string> unreadable_;  // what could not be read in this pass, or the last
  std::string first_unreadable_;         // with the reason
  std::string first_undeletable_;        // with the reason; since the last pass
  bool report_due_ = false;
};

}  // namespace framelane
