#include "kernels/converter.hpp"

#include <cassert>
#include <utility>

#include "kernels/plane_copy.hpp"
#include "kernels/reference.hpp"
#include "kernels/remap.hpp"
#include "kernels/rgb_to_yuv.hpp"
#include "kernels/row_converter.hpp"
#include "kernels/scaler.hpp"

namespace framelane {

std::unique_ptr<const Converter> Converter::make(const Conversion& conversion, Stores stores) {
  assert(!why_unsupported(conversion));
  if (is_identity(conversion)) return make_plane_copy();
  if (conversion.scaling) {
    auto scaler = make_scaler(conversion);
    return scaler != nullptr ? std::move(scaler) : make_reference_converter(conversion);
  }
  if (is_rgb_to_yuv(conversion)) {
    if (auto tiles = make_rgb_to_yuv_converter(conversion, stores)) return tiles;
  }
  if (auto remap = make_remap_converter(conversion)) return remap;
  if (auto rows = make_row_converter(conversion)) return rows;
  return make_reference_converter(conversion);
}

}  // namespace framelane
