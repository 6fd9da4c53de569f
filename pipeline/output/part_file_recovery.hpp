#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "pipeline/av/interrupt.hpp"
#include "pipeline/output/container.hpp"
#include "pipeline/output/file_pattern.hpp"
#include "pipeline/output/folder_walk.hpp"
#include "pipeline/output/output_options.hpp"
#include "pipeline/output/part_file.hpp"

namespace framelane {

/// Completes one output's part files that nobody writes any more: a NAME.part with something to
/// play in it becomes NAME, or the next free numbered name. Only one that is empty, or holds a
/// container's header alone, is removed; one in which nothing can be read stays, and the log names
/// it. Not thread-safe. Blocks as long as the file system does, and as long as it looks into files:
/// until the stop at most. After a stop salvage() and retry() look for a quarter of a second each,
/// because a stop has little time.
class PartFileRecovery {
 public:
  /// The longest look into files, of all calls but retry().
  static constexpr std::chrono::seconds kLook{5};

  /// `subject` begins its lines in the log. `on_named`: is told the name of each file that it
  /// completes; may be empty.
  explicit PartFileRecovery(std::string subject, std::chrono::milliseconds look = kLook,
                            std::function<void(const std::string&)> on_named = {});
  ~PartFileRecovery();

  /// True while files have to wait for their names, or folders that could not be read may have
  /// some.
  bool waits() const { return !waiting_.empty() || !unreadable_.empty(); }

  /// Completes what an earlier run left where an output with these options writes. Part files that
  /// somebody still writes stay, and so does what was not examined before the stop. What was not
  /// examined in time, since packets may come already, is left to retry(). `calls` is armed anew
  /// with `call` for each file. Called once, first.
  void recover(const OutputOptions& options, Interrupt& calls, std::chrono::milliseconds call,
               const std::stop_token& stop = {});
  /// Completes a file of which the writing failed. Says what has become of it.
  PartFile::Fate salvage(PartFile& file, const Container& container, const std::stop_token& stop);
  /// Tries again with those that had to stay for now: they could not be opened, their folder could
  /// not be written, or they could not be examined in time. Looks for files again if a folder that
  /// could not be read can be read now. Takes a second in all, because the output's packets wait
  /// meanwhile. The next call goes on with what is left.
  void retry(const Container& container, const std::stop_token& stop);

 private:
  struct Limit;
  struct Search;

  void note_recovered(const std::string& path, const Container& container,
                      const FilePattern& pattern, const PartFile::Salvage& done);
  /// Tells of it if it has its name. Logs what became of it if it stays, and remembers it if that
  /// may change.
  void note(const std::string& part, const Container& container, const PartFile::Salvage& done);
  void note_unreadable(const UnreadableFolder& folder) const;
  /// True if one of the folders that could not be read can be read now, or is gone.
  bool search_is_due() const;
  /// Looks through the folders again, and completes what it finds in those that could not be read.
  void search(const Container& container, const Limit& limit);

  const std::string subject_;
  const std::chrono::milliseconds look_;
  const std::function<void(const std::string&)> on_named_;
  std::deque<std::string> waiting_;      // paths of part files
  std::vector<std::string> unreadable_;  // paths of folders
  std::unique_ptr<Search> search_;       // under way
};

}  // namespace framelane
