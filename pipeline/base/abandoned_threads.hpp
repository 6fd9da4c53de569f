#pragma once

#include <cstdint>

namespace framelane {

/// Threads of this process that were left behind because a call did not return. While there is one,
/// the process must end without destroying its objects, which such a thread may still use. Any
/// thread.
std::uint64_t threads_abandoned();
void count_abandoned_threads(int threads);

}  // namespace framelane
