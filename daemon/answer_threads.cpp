#include "daemon/answer_threads.hpp"

#include <exception>
#include <thread>
#include <utility>

namespace framelane {

bool AnswerThreads::start(std::function<void()> answer, std::size_t most) {
  const auto self = std::make_shared<AbandonableThread>();
  {
    const std::lock_guard lock(mutex_);
    if (ended_ || threads_.size() >= most) return false;
    threads_.insert(self);
  }
  try {
    std::thread([this, self, answer = std::move(answer)]() noexcept {
      answer();
      leave(self);
      self->end();
    }).detach();
    return true;
  } catch (const std::exception&) {  // threads or memory are short
    leave(self);
    return false;
  }
}

void AnswerThreads::leave(const std::shared_ptr<AbandonableThread>& thread) {
  const std::lock_guard lock(mutex_);
  threads_.erase(thread);
  left_.notify_all();
}

bool AnswerThreads::end(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  ended_ = true;
  if (left_.wait_for(lock, time, [this] { return threads_.empty(); })) return true;
  for (const auto& thread : threads_) thread->abandon();
  return false;
}

}  // namespace framelane
