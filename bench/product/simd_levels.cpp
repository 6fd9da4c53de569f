#include "bench/product/simd_levels.hpp"

#include <hwy/targets.h>

namespace framelane::bench {
namespace {

// 0: whatever the CPU has.
void choose_target(std::int64_t target) {
  hwy::SetSupportedTargetsForTest(target);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace

std::vector<SimdLevel> lower_simd_levels() {
  std::vector<SimdLevel> levels;
#if HWY_ARCH_X86
  const std::int64_t all = hwy::SupportedTargets();
  const std::int64_t best = all & -all;  // the lowest bit is the best target
  for (const SimdLevel& level :
       {SimdLevel{"AVX-512 without VNNI", HWY_AVX3}, SimdLevel{"AVX2", HWY_AVX2}}) {
    if ((all & level.target) != 0 && level.target != best) levels.push_back(level);
  }
#endif
  return levels;
}

std::unique_ptr<const Converter> make_converter(const Conversion& conversion, Stores stores,
                                                const SimdLevel& level) {
  choose_target(level.target);
  auto converter = Converter::make(conversion, stores);
  choose_target(0);
  return converter;
}

}  // namespace framelane::bench
