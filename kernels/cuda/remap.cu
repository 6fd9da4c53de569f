#include "kernels/cuda/remap.cuh"

#include <algorithm>
#include <array>

#include "kernels/cuda/frame_by_frame.hpp"
#include "kernels/cuda/general.hpp"
#include "kernels/cuda/remap.hpp"
#include "kernels/fixed_form.hpp"

namespace framelane {
namespace {

using namespace cuda;

/// True for YUV formats whose luma has a plane of its own.
bool is_planar(PixelFormat format) {
  return !info(format).rgb && info(format).planes[0].bytes_per_sample == 1;
}

class RemapConverter final : public FrameByFrame {
 public:
  RemapConverter(const Conversion& conversion, const std::array<ByteMap, 3>& maps)
      : FrameByFrame(Remap::kColumns, make_general_cuda_converter(conversion)),
        maps_(maps),
        chroma_(!info(conversion.target).gray),
        half_height_(info(conversion.target).chroma_half_height) {}

  const char* name() const override { return "remap"; }

 private:
  cudaError_t enqueue_kernel(const CudaFrame& frame, int row_begin, int row_end,
                             cudaStream_t stream) const override {
    Remap body{};
    locate(frame.source, body.from);
    locate(frame.target, body.to);
    std::ranges::copy(maps_, body.maps);
    body.luma_begin = row_begin;
    body.luma_rows = row_end - row_begin;
    body.chroma_begin = half_height_ ? row_begin / 2 : row_begin;
    const int chroma_end = half_height_ ? (row_end + 1) / 2 : row_end;
    const int rows = body.luma_rows + (chroma_ ? chroma_end - body.chroma_begin : 0);
    const int columns = (frame.target.width + Remap::kColumns - 1) / Remap::kColumns;
    return launch<Residency::kAny>(columns, rows, 1, stream, body);
  }

  cudaError_t load_kernel() const override { return cuda::load<Residency::kAny, Remap>(); }

  const std::array<ByteMap, 3> maps_;
  const bool chroma_;
  const bool half_height_;
};

}  // namespace

std::unique_ptr<const CudaConverter> make_cuda_remap_converter(const Conversion& conversion) {
  const PixelFormatInfo& source = info(conversion.source);
  const PixelFormatInfo& target = info(conversion.target);
  const bool same_grid = source.chroma_half_width == target.chroma_half_width &&
                         source.chroma_half_height == target.chroma_half_height &&
                         source.gray == target.gray;
  if (!is_planar(conversion.source) || !is_planar(conversion.target) ||
      !(same_grid || target.gray) || mixes_channels(conversion)) {
    return nullptr;
  }
  const auto forms = color_transform(conversion);
  std::array<ByteMap, 3> maps{};
  for (std::size_t i = 0; i < maps.size(); ++i) {
    const FixedForm form = fixed_form(forms[i], {1, 1, 1});
    if (form.window != 0) return nullptr;  // the form is not exact for every byte
    maps[i] = {form.coefficients[0], form.offset, form.fraction_bits};
  }
  return std::make_unique<RemapConverter>(conversion, maps);
}

}  // namespace framelane
