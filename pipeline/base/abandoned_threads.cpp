#include "pipeline/base/abandoned_threads.hpp"

namespace framelane {
namespace {

std::atomic<std::uint64_t> g_abandoned{0};
std::atomic<std::uint64_t> g_ended{0};  // of those

}  // namespace

std::uint64_t threads_abandoned() { return g_abandoned; }

std::uint64_t threads_stuck() {
  const std::uint64_t ended = g_ended;
  const std::uint64_t abandoned = g_abandoned;
  return abandoned > ended ? abandoned - ended : 0;  // one may have ended before it was counted
}

void AbandonableThread::abandon() {
  State runs = State::kRuns;
  if (state_.compare_exchange_strong(runs, State::kAbandoned)) ++g_abandoned;
}

void AbandonableThread::end() {
  if (state_.exchange(State::kEnded) == State::kAbandoned) ++g_ended;
}

}  // namespace framelane
