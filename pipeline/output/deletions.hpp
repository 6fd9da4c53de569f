#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <utility>

#include "pipeline/base/fault_log.hpp"

namespace framelane {

/// Deletes files that nobody needs any more. What cannot be deleted is logged, and tried again.
/// Folders stay. Not thread-safe. Every call blocks as long as the file system does.
class Deletions {
 public:
  /// `subject` begins its lines in the log.
  explicit Deletions(std::string subject) : faults_(std::move(subject)) {}

  /// Deletes the file now, or remembers it.
  void remove(const std::string& path);
  /// Tries a few of those that could not be deleted. The next call goes on with others.
  void retry();

 private:
  static constexpr std::size_t kAtOnce = 8;
  /// What is more is left to the next start of the process.
  static constexpr std::size_t kMost = 10'000;

  /// Deletes it, or notes why that fails and puts it at the end of those that wait.
  void remove_or_wait(std::string path);

  FaultLog faults_;
  std::deque<std::string> waiting_;  // paths
  std::string first_fault_;          // of those that wait; empty: none does
};

}  // namespace framelane
