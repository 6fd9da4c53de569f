// What the suite `overlap` concludes from its figures, and the names of its rows. Any thread; needs
// no GPU.
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

/// Says what so many copy engines can do at once and, if it was measured, how long copies in both
/// directions at once take, relative to the longer of the two alone.
std::string judge_copy_engines(int engines, const Result& result);

/// Says whether the order of issue matters with pinned memory: comparing the best of each order,
/// and comparing both orders with the same chunk and number of streams. Empty if nothing was
/// measured in both orders.
std::string judge_order(const Result& result);

}  // namespace framelane::bench
