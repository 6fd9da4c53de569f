#include "kernels/overlay.hpp"

// Highway includes this file once for each instruction set, and compiles what stands between
// HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE for it.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/overlay_blend.cpp"
#include <hwy/foreach_target.h>  // must precede highway.h
#include <hwy/highway.h>

#include "kernels/line_vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace framelane {
namespace {
namespace HWY_NAMESPACE {

void blend_line(const std::uint8_t* codes, const std::uint8_t* weights, std::uint8_t* line,
                std::size_t count) {
  using HalfBytes = hn::Rebind<std::uint8_t, Shorts>;
  const Shorts d;
  const HalfBytes bytes;
  const auto all = hn::Set(d, 255);
  for_each_vector(bytes, count, [=](std::size_t i, std::size_t n) HWY_ATTR {
    const auto weight = hn::PromoteTo(d, load(bytes, weights + i, n));
    const auto code = hn::PromoteTo(d, load(bytes, codes + i, n));
    const auto under = hn::PromoteTo(d, load(bytes, line + i, n));
    const auto sum = hn::Add(hn::Add(hn::Mul(weight, code), hn::Mul(hn::Sub(all, weight), under)),
                             hn::Set(d, 127));
    // s / 255, rounded down, is (s + 1 + s / 256) / 256 for every s below 65535.
    const auto quotient =
        hn::ShiftRight<8>(hn::Add(hn::Add(sum, hn::Set(d, 1)), hn::ShiftRight<8>(sum)));
    store(hn::DemoteTo(bytes, hn::BitCast(hn::RebindToSigned<Shorts>(), quotient)), bytes, line + i,
          n);
  });
}

using BlendLine = void (*)(const std::uint8_t*, const std::uint8_t*, std::uint8_t*, std::size_t);
BlendLine get_blend_line() { return blend_line; }

}  // namespace HWY_NAMESPACE
}  // namespace
}  // namespace framelane
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace framelane {
namespace {
HWY_EXPORT(get_blend_line);
}  // namespace

void blend(const Overlay& overlay, const ImageView& frame, int row_begin, int row_end) {
  const auto blend_line = HWY_DYNAMIC_DISPATCH(get_blend_line)();
  for (int plane = 0; plane < info(overlay.format()).plane_count; ++plane) {
    const Overlay::Plane& place = overlay.planes()[static_cast<std::size_t>(plane)];
    const RowRange rows = overlay_rows(overlay, plane, row_begin, row_end);
    const auto row_bytes = static_cast<std::size_t>(place.row_bytes);
    for (int row = rows.begin; row < rows.end; ++row) {
      const std::size_t offset = static_cast<std::size_t>(row) * row_bytes;
      blend_line(&overlay.bytes()[place.codes + offset], &overlay.bytes()[place.weights + offset],
                 frame.row(plane, place.top + row) + place.left, row_bytes);
    }
  }
}

}  // namespace framelane
#endif  // HWY_ONCE
