#include "tests/pipeline/frames/random_bytes.hpp"

#include <algorithm>
#include <cstring>

namespace framelane::testing {

// SplitMix64: Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014.
void fill_random(std::span<std::uint8_t> bytes, std::uint64_t seed) {
  std::uint64_t state = seed;
  for (std::size_t i = 0; i < bytes.size(); i += sizeof state) {
    state += 0x9E3779B97F4A7C15;
    std::uint64_t value = state;
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB;
    value ^= value >> 31;
    std::memcpy(bytes.data() + i, &value, std::min(sizeof value, bytes.size() - i));
  }
}

}  // namespace framelane::testing
