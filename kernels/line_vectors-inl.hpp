// Vectors of a line of samples. Highway's way to share code between files: it is included, and
// compiled, once for each instruction set, inside a file that includes foreach_target.h.
#if defined(FRAMELANE_LINE_VECTORS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef FRAMELANE_LINE_VECTORS_INL_HPP
#undef FRAMELANE_LINE_VECTORS_INL_HPP
#else
#define FRAMELANE_LINE_VECTORS_INL_HPP
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace framelane {
namespace {  // NOLINT(google-build-namespaces): each file that includes this compiles its own
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// No more lanes than AVX-512 has, so that arrays for a line's tail have a fixed size.
using Bytes = hn::CappedTag<std::uint8_t, 64>;
using Shorts = hn::CappedTag<std::uint16_t, 32>;

// The last few samples of a line go through an array. For whole vectors `count` is a constant, so
// the compiler removes the test.
template <class D, typename T>
HWY_INLINE hn::Vec<D> load(D d, const T* from, std::size_t count) {
  if (count >= hn::Lanes(d)) return hn::LoadU(d, from);
  alignas(64) T lanes[hn::MaxLanes(d)] = {};
  std::memcpy(lanes, from, count * sizeof(T));
  return hn::Load(d, lanes);
}

template <class D, typename T>
HWY_INLINE void store(hn::Vec<D> v, D d, T* to, std::size_t count) {
  if (count >= hn::Lanes(d)) return hn::StoreU(v, d, to);
  alignas(64) T lanes[hn::MaxLanes(d)];
  hn::Store(v, d, lanes);
  std::memcpy(to, lanes, count * sizeof(T));
}

// Calls body(i, n) for each vector: n samples from i on.
template <class D, class Body>
HWY_INLINE void for_each_vector(D d, std::size_t count, Body body) {
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) body(i, lanes);
  if (i < count) body(i, count - i);
}

}  // namespace HWY_NAMESPACE
}  // namespace
}  // namespace framelane
HWY_AFTER_NAMESPACE();
#endif
