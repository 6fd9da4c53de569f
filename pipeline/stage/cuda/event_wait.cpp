#include "pipeline/stage/cuda/event_wait.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <thread>

namespace framelane {

void EventWait::prepare_thread() { ::prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL); }

void EventWait::wait(const CudaEvent& event) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  Duration sleep = std::clamp(usual_, kShortest, kLongestFirst);
  int sleeps = 0;
  for (; !event.has_come(); ++sleeps) {
    std::this_thread::sleep_for(sleep);
    sleep = std::clamp<Duration>((Clock::now() - begin) / 8, kShortest, kLongest);
  }
  if (sleeps > 1) {
    usual_ += (Clock::now() - begin - usual_) / 4;
  } else {
    // Nobody knows how much of the one sleep was too much.
    usual_ -= usual_ / (sleeps == 1 ? 16 : 4);
  }
}

}  // namespace framelane
