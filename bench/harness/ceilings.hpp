// What several suites measure before their contenders: parts of the work alone, beside which every
// way to do the whole of it is seen.
#pragma once

#include <cstddef>
#include <vector>

#include "bench/harness/turns.hpp"

namespace framelane::bench {

inline constexpr const char* kUploadAlone = "upload alone";
inline constexpr const char* kDownloadAlone = "download alone";
inline constexpr const char* kBothWaysAtOnce = "upload and download at once";
inline constexpr const char* kKernelAlone = "kernel alone";
inline constexpr const char* kCopyingAlone = "CPU, copying as many bytes alone";

/// For works on one core, each of which reads and writes `bytes` of memory together: copies half as
/// many as `works` of them, in one piece, so that as many are read and written. A sample is one
/// work. Has memory of its own, as much as those works. Throws FeedError(kMemory).
Contender copying_alone(std::vector<Parameter> parameters, double bytes, std::size_t works = 1);

/// "2.00 times what copying as many bytes takes, ...", of a row and copying_alone's.
std::string beside_copying(const Row& row, const Row& copying);

}  // namespace framelane::bench
