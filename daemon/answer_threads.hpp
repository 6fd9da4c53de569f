#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <set>

#include "pipeline/base/abandoned_threads.hpp"

namespace framelane {

/// The threads on which the admin listener answers what takes long, one for each request. Any
/// thread.
class AnswerThreads {
 public:
  /// Calls `answer`, which must not throw, on a thread of its own. False, and it is not called, if
  /// `most` or more are under way, if no thread starts, or after end().
  bool start(std::function<void()> answer, std::size_t most);
  /// Waits for those that are under way, `time` at most. False if some are left: they are counted
  /// as abandoned, and use this object when they come to an end.
  bool end(std::chrono::milliseconds time);

 private:
  void leave(const std::shared_ptr<AbandonableThread>& thread);

  std::mutex mutex_;  // guards what follows
  std::condition_variable left_;
  std::set<std::shared_ptr<AbandonableThread>> threads_;
  bool ended_ = false;
};

}  // namespace framelane
