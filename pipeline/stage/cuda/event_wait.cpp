#include "pipeline/stage/cuda/event_wait.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <thread>

namespace framelane {

void EventWait::prepare_thread() { ::prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL); }

void EventWait::wait(const CudaEvent& event) {
  using Clock = std::chrono::steady_clock;
  constexpr int kWeight = 4;  // of what is usual
  const Clock::time_point begin = Clock::now();
  Duration sleep = usual_ - usual_ / 8;
  int sleeps = 0;
  for (; !event.has_come(); ++sleeps) {
    std::this_thread::sleep_for(std::clamp(sleep, kShortest, kLongest));
    sleep = (Clock::now() - begin) / 8;
  }
  if (sleeps > 1) {
    usual_ += (Clock::now() - begin - usual_) / kWeight;
  } else {
    usual_ -= usual_ / kWeight;  // nobody knows how much of the sleep was too much
  }
}

}  // namespace framelane
