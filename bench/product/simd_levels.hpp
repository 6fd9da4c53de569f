// Our conversions as they run on a CPU with fewer instructions than this one.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/converter.hpp"

namespace framelane::bench {

/// One of Highway's instruction sets.
struct SimdLevel {
  const char* name;
  std::int64_t target;
};
/// Those of interest that this CPU has, below the best that it has.
std::vector<SimdLevel> lower_simd_levels();

/// Converter::make for that instruction set. Not while another thread makes a converter: Highway's
/// choice is one for the process.
std::unique_ptr<const Converter> make_converter(const Conversion& conversion, Stores stores,
                                                const SimdLevel& level);

}  // namespace framelane::bench
