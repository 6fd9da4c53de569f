// What several suites measure beside their contenders: the parts of a work alone, which no way to
// do the whole of it passes.
#pragma once

#include <cstddef>
#include <vector>

#include "bench/suites/turns.hpp"

namespace framelane::bench {

inline constexpr const char* kUploadAlone = "upload alone";
inline constexpr const char* kDownloadAlone = "download alone";
inline constexpr const char* kBothWaysAtOnce = "upload and download at once";
inline constexpr const char* kKernelAlone = "kernel alone";
inline constexpr const char* kCopyingAlone = "CPU, copying as many bytes alone";

/// For works on one core that read and write memory, `bytes` of each: copies half of the bytes of
/// `works` works, one behind the other, which are then read and written. A sample is one work. Has
/// memory of its own, as much as those works. Throws FeedError(kMemory).
Contender copying_alone(std::vector<Parameter> parameters, double bytes, std::size_t works = 1);

/// " times what copying as many bytes takes (… GB/s)", of a row and that contender's.
std::string beside_copying(const Row& row, const Row& copying);

}  // namespace framelane::bench
