#include "kernels/cuda/cuda_converter.hpp"

#include <cassert>

#include "kernels/cuda/general.hpp"
#include "kernels/cuda/remap.hpp"
#include "kernels/cuda/rematrix.hpp"
#include "kernels/cuda/rgb_to_yuv.hpp"
#include "kernels/cuda/scale.hpp"
#include "kernels/cuda/unpack.hpp"

namespace framelane {

std::unique_ptr<const CudaConverter> CudaConverter::make(const Conversion& conversion) {
  assert(!why_unsupported(conversion) && !is_identity(conversion));
  if (conversion.scaling) return make_cuda_scale_converter(conversion);
  if (is_cuda_rgb_to_yuv(conversion)) return make_cuda_rgb_to_yuv_converter(conversion);
  if (auto remap = make_cuda_remap_converter(conversion)) return remap;
  if (auto rematrix = make_cuda_rematrix_converter(conversion)) return rematrix;
  if (auto unpack = make_cuda_unpack_converter(conversion)) return unpack;
  return make_general_cuda_converter(conversion);
}

}  // namespace framelane
