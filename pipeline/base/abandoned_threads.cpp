#include "pipeline/base/abandoned_threads.hpp"

#include <atomic>

namespace framelane {
namespace {

std::atomic<std::uint64_t> g_abandoned{0};

}  // namespace

std::uint64_t threads_abandoned() { return g_abandoned; }

void count_abandoned_threads(int threads) { g_abandoned += static_cast<std::uint64_t>(threads); }

}  // namespace framelane
