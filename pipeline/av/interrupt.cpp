#include "pipeline/av/interrupt.hpp"

namespace framelane {
namespace {

std::int64_t now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

}  // namespace

void Interrupt::arm(std::chrono::milliseconds timeout) {
  cause_ = Cause::kNone;
  farewell_ = false;
  deadline_ns_ = now_ns() + std::chrono::nanoseconds(timeout).count();
}

void Interrupt::arm_farewell(std::chrono::milliseconds timeout) {
  arm(timeout);
  farewell_ = true;
}

void Interrupt::disarm() {
  deadline_ns_ = 0;
  farewell_ = false;
}

bool Interrupt::overdue() const {
  const std::int64_t deadline = deadline_ns_;
  return deadline != 0 && now_ns() >= deadline;
}

AVIOInterruptCB Interrupt::callback() { return {&Interrupt::check, this}; }

int Interrupt::check(void* self) {
  auto& interrupt = *static_cast<Interrupt*>(self);
  if (interrupt.stop_.stop_requested() && !interrupt.farewell_) {
    interrupt.cause_ = Cause::kStopped;
    return 1;
  }
  if (interrupt.overdue()) {
    interrupt.cause_ = Cause::kTimeout;
    return 1;
  }
  return 0;
}

}  // namespace framelane
