#include "pipeline/cuda/device_clock.hpp"

namespace framelane {

DeviceClock::DeviceClock() { mark(true); }

void DeviceClock::keep() {
  if (Clock::now() - tried_at_ >= kMarkEvery) mark(false);
}

void DeviceClock::mark(bool first) {
  const int next = 1 - current_;
  const Clock::time_point asked = Clock::now();
  tried_at_ = asked;
  marks_[next].record(stream_);
  marks_[next].synchronize();
  const Clock::duration answer = Clock::now() - asked;
  if (!first && answer > kPromptAnswer && asked - marked_at_ < kMarkAnyway) return;
  current_ = next;
  marked_at_ = asked + answer / 2;
}

DeviceClock::Clock::time_point DeviceClock::time_of(const CudaEvent& event) const {
  float milliseconds = 0;  // below 0 for what came before the mark
  cuda::check(cudaEventElapsedTime(&milliseconds, marks_[current_].get(), event.get()),
              "cudaEventElapsedTime");
  return marked_at_ + std::chrono::duration_cast<Clock::duration>(
                          std::chrono::duration<double, std::milli>(milliseconds));
}

}  // namespace framelane
