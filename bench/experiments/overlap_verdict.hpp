// What the suite `overlap` makes of its figures, and the names of their rows. Any thread; no GPU.
#pragma once

#include <string>

#include "bench/harness/result.hpp"

namespace framelane::bench {

inline constexpr const char* kInTurn = "in turn";
inline constexpr const char* kInChunks = "in chunks";
// Parameters.
inline constexpr const char* kMemory = "memory";
inline constexpr const char* kOrder = "order";
inline constexpr const char* kChunk = "chunk KiB";
inline constexpr const char* kOverStreams = "streams";

/// What so many copy engines can do at once, and how long copies both ways at once take beside the
/// longer of both alone, where that was measured.
std::string judge_copy_engines(int engines, const Result& result);

/// Whether the order of issue matters, from pinned memory: where each order is at its best, and
/// with the same chunk and streams. Empty: nothing was measured in both orders.
std::string judge_order(const Result& result);

}  // namespace framelane::bench
