#include "pipeline/output/deletions.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "pipeline/base/failure.hpp"
#include "pipeline/base/redact.hpp"

namespace framelane {

void Deletions::remove(const std::string& path) { remove_or_wait(path); }

void Deletions::retry() {
  if (waiting_.empty()) return;
  for (std::size_t left = std::min(waiting_.size(), kAtOnce); left > 0; --left) {
    std::string path = std::move(waiting_.front());
    waiting_.pop_front();
    remove_or_wait(std::move(path));
  }
  if (!waiting_.empty()) return;
  first_fault_.clear();
  faults_.recovered("deleting old files");
}

void Deletions::remove_or_wait(std::string path) {
  if (unlink(path.c_str()) == 0 || errno == ENOENT || errno == ENOTDIR || errno == EISDIR) return;
  // The log has one line about all of them.
  if (first_fault_.empty()) {
    first_fault_ = "cannot delete " + redact(path) + ": " + std::generic_category().message(errno);
  }
  waiting_.push_back(std::move(path));
  if (waiting_.size() > kMost) waiting_.pop_front();
  faults_.failed(
      fault_code(RetentionFault::kDelete), first_fault_,
      "files that are no longer needed, and are still there: " + std::to_string(waiting_.size()) +
          "; delete them, or let this user write to their folder");
}

}  // namespace framelane
