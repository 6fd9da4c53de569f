#pragma once

#include <filesystem>
#include <stop_token>
#include <string>
#include <vector>

#include "pipeline/output/container.hpp"
#include "pipeline/output/file_pattern.hpp"
#include "pipeline/output/output_options.hpp"
#include "pipeline/output/part_file.hpp"

namespace framelane {

/// Completes one output's part files that nobody writes any more: a NAME.part with something to
/// play in it becomes NAME, or the next free numbered name. Only one that is empty, or holds a
/// container's header alone, is removed; one in which nothing can be read stays, and the log names
/// it. Not thread-safe. Blocks as long as the file system does, and up to five seconds for each
/// file.
class PartFileRecovery {
 public:
  /// `subject` begins its lines in the log.
  explicit PartFileRecovery(std::string subject) : subject_(std::move(subject)) {}

  /// Completes what an earlier process left where an output with these options writes. Part files
  /// that another process writes stay, and so does what was not examined before the stop. Called
  /// once, before the feed's packets come.
  void recover(const OutputOptions& options, const std::stop_token& stop = {});
  /// Completes a file of which the writing failed.
  void salvage(PartFile& file, const Container& container);
  /// Tries again with those that had to stay for now: their folder could not be written, or they
  /// could not be examined in time.
  void retry(const Container& container);

 private:
  void recover(const std::filesystem::path& path, const Container& container,
               const FilePattern& pattern, const std::stop_token& stop);
  /// Logs what became of it if it stays, and remembers it if that may change.
  void note(const std::string& part, const Container& container, const PartFile::Salvage& done);

  const std::string subject_;
  std::vector<std::string> waiting_;  // paths of part files
};

}  // namespace framelane
