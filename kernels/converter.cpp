#include "kernels/converter.hpp"

#include <cassert>

#include "kernels/reference.hpp"
#include "kernels/relayout.hpp"
#include "kernels/rgb_to_yuv420.hpp"
#include "kernels/row_converter.hpp"

namespace framelane {

std::unique_ptr<const Converter> Converter::make(const Conversion& conversion) {
  assert(!why_unsupported(conversion));
  if (is_relayout(conversion)) return make_relayout_converter(conversion);
  if (is_rgb_to_yuv420(conversion)) return make_rgb_to_yuv420_converter(conversion);
  if (auto rows = make_row_converter(conversion)) return rows;
  return make_reference_converter(conversion);
}

}  // namespace framelane
