#include "kernels/cuda/general.cuh"

#include <array>

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
      : mixed_(mixes_channels(conversion)),
        source_(subsampling(conversion.source, conversion.source_color.siting)),
        target_(subsampling(conversion.target, conversion.target_color.siting)) {
    const auto forms = color_transform(conversion);
    forms_ = {make_form(forms[0].rounding_for_scale(General<true>::kSiteScale)),
              make_form(forms[1].rounding_for_scale(General<true>::kFilteredScale)),
              make_form(forms[2].rounding_for_scale(General<true>::kFilteredScale))};
  }

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
    General<kMixed> body{};
    locate(frame.source, body.from);
    locate(frame.target, body.to);
    for (std::size_t i = 0; i < 3; ++i) body.forms[i] = forms_[i];
    body.source = source_;
    body.target = target_;
    body.row_begin = row_begin;
    body.row_end = row_end;
    const int columns = target_.half_width ? (frame.target.width + 1) / 2 : frame.target.width;
    const int rows = target_.half_height ? (row_end - row_begin + 1) / 2 : row_end - row_begin;
    return launch<Residency::kAny>(columns, rows, 1, stream, body);
  }

  bool mixed_;
  Subsampling source_, target_;
  std::array<Form, 3> forms_;
};

}  // namespace

std::unique_ptr<const CudaConverter> make_general_cuda_converter(const Conversion& conversion) {
  return std::make_unique<GeneralConverter>(conversion);
}

}  // namespace framelane
