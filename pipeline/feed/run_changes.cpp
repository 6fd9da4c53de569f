#include "pipeline/feed/run_changes.hpp"

#include <utility>

namespace framelane {

bool RunChanges::post(Change change) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return false;
    changes_.push_back(std::move(change));
    any_ = true;
  }
  posted_.notify_all();
  return true;
}

std::vector<EncodeRoute*> RunChanges::take_gone() {
  const std::lock_guard lock(mutex_);
  return std::exchange(gone_, {});
}

std::vector<RunChanges::Change> RunChanges::take() {
  const std::lock_guard lock(mutex_);
  any_ = false;
  return std::exchange(changes_, {});
}

void RunChanges::let_go(const std::vector<EncodeRoute*>& routes) {
  const std::lock_guard lock(mutex_);
  gone_.insert(gone_.end(), routes.begin(), routes.end());
}

void RunChanges::wait_until(std::chrono::steady_clock::time_point deadline,
                            const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  posted_.wait_until(lock, stop, deadline, [this] { return !changes_.empty(); });
}

void RunChanges::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
}

}  // namespace framelane
