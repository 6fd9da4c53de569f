#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "pipeline/base/abandoned_threads.hpp"

namespace framelane {

/// Reads something on a thread of its own, since a file may be on a file server that does not
/// answer. One thread uses it.
template <typename T>
class DetachedRead {
 public:
  /// Begins to read. `read` may block for any time, and shares the ownership of what it uses. False
  /// if an earlier read has not come to an end: no second one begins beside it. Throws
  /// std::system_error if no thread starts.
  bool begin(std::function<T()> read) {
    if (under_way()) return false;
    auto thread = std::make_shared<AbandonableThread>();
    std::packaged_task<T()> task(std::move(read));
    auto result = task.get_future();
    std::thread([task = std::move(task), thread]() mutable {
      task();
      thread->end();
    }).detach();
    result_ = std::move(result);
    thread_ = std::move(thread);
    return true;
  }
  bool under_way() const { return result_.valid() && !ends_within(std::chrono::milliseconds(0)); }
  /// Waits for the read that was begun; what it has read, or nothing if it has not come to an end
  /// within `time`. Throws what it has thrown.
  std::optional<T> wait_for(std::chrono::milliseconds time) {
    if (!ends_within(time)) return std::nullopt;
    return result_.get();
  }
  /// Counts the thread as abandoned, once, if it still reads.
  void abandon() {
    if (under_way()) thread_->abandon();
  }

 private:
  bool ends_within(std::chrono::milliseconds time) const {
    return result_.wait_for(time) == std::future_status::ready;
  }

  std::future<T> result_;  // valid: of a read whose result nobody has taken
  std::shared_ptr<AbandonableThread> thread_;
};

}  // namespace framelane
