// Single parts of the work, such as one copy. They show how fast the whole could be at best.
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

/// Copies half of `works` × `bytes` in one piece on one core, so that as many bytes are read and
/// written as by that many works. A sample is the time of one work. Has memory of its own, as much
/// as those works. Throws FeedError(kMemory).
Contender copying_alone(std::vector<Parameter> parameters, double bytes, std::size_t works = 1);

/// "2.00 times what copying as many bytes takes, ...", of a row and copying_alone's.
std::string beside_copying(const Row& row, const Row& copying);

}  // namespace framelane::bench
