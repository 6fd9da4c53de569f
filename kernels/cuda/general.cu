#include "kernels/cuda/general.cuh"

#include "kernels/cuda/frame_by_frame.hpp"
#include "kernels/cuda/general.hpp"

namespace framelane {
namespace {

using namespace cuda;

Subsampling subsampling(PixelFormat format, Siting siting) {
  return {info(format).chroma_half_width, info(format).chroma_half_height,
          siting != Siting::kCenter, siting == Siting::kTopLeft};
}

class GeneralConverter final : public FrameByFrame {
 public:
  explicit GeneralConverter(const Conversion& conversion)
      : mixed_(mixes_channels(conversion)), conversion_(general_conversion(conversion)) {}

  const char* name() const override { return "general"; }

 private:
  cudaError_t enqueue_kernel(const CudaFrame& frame, int row_begin, int row_end,
                             cudaStream_t stream) const override {
    return mixed_ ? launch_one<true>(frame, row_begin, row_end, stream)
                  : launch_one<false>(frame, row_begin, row_end, stream);
  }

  cudaError_t load_kernel() const override {
    return mixed_ ? cuda::load<Residency::kAny, General<true>>()
                  : cuda::load<Residency::kAny, General<false>>();
  }

  template <bool kMixed>
  cudaError_t launch_one(const CudaFrame& frame, int row_begin, int row_end,
                         cudaStream_t stream) const {
    const Subsampling& target = conversion_.target;
    const int columns = target.half_width ? (frame.target.width + 1) / 2 : frame.target.width;
    const int rows = target.half_height ? (row_end - row_begin + 1) / 2 : row_end - row_begin;
    return launch<Residency::kAny>(columns, rows, 1, stream,
                                   General<kMixed>(conversion_, frame, row_begin, row_end));
  }

  const bool mixed_;
  const GeneralConversion conversion_;
};

}  // namespace

GeneralConversion cuda::general_conversion(const Conversion& conversion) {
  constexpr int kSite = GeneralConversion::kSiteScale;
  constexpr int kFiltered = GeneralConversion::kFilteredScale;
  const auto forms = color_transform(conversion);
  return {{make_form(forms[0].rounding_for_scale(kSite)),
           make_form(forms[1].rounding_for_scale(kFiltered)),
           make_form(forms[2].rounding_for_scale(kFiltered))},
          subsampling(conversion.source, conversion.source_color.siting),
          subsampling(conversion.target, conversion.target_color.siting)};
}

std::unique_ptr<const CudaConverter> make_general_cuda_converter(const Conversion& conversion) {
  return std::make_unique<GeneralConverter>(conversion);
}

}  // namespace framelane
