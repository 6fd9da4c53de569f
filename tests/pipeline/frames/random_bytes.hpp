#pragma once

#include <cstdint>
#include <span>

namespace framelane::testing {

/// Fills `bytes` with random ones, the same for the same seed. Writes eight at a time: under
/// ThreadSanitizer each write is expensive, and whole frames and files are filled with this.
void fill_random(std::span<std::uint8_t> bytes, std::uint64_t seed);

}  // namespace framelane::testing
