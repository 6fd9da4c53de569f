#include "kernels/cuda/general.cuh"

#include <array>

#include "kernels/cuda/general.hpp"
#include "kernels/cuda/luma_count.hpp"

namespace framelane {
namespace {

using namespace cuda;

Subsampling subsampling(PixelFormat format, Siting siting) {
  return {info(format).chroma_half_width, info(format).chroma_half_height,
          siting != Siting::kCenter, siting == Siting::kTopLeft};
}

class GeneralConverter final : public CudaConverter {
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

  using CudaConverter::enqueue;
  cudaError_t enqueue(std::span<const CudaFrame> frames, int row_begin, int row_end,
                      cudaStream_t stream) const override {
    for (const CudaFrame& frame : frames) {
      cudaError_t error = mixed_ ? launch_one<true>(frame, row_begin, row_end, stream)
                                 : launch_one<false>(frame, row_begin, row_end, stream);
      if (error == cudaSuccess && frame.luma_counts != nullptr) {
        error = enqueue_luma_count(as_const(frame.target), row_begin, row_end, frame.luma_counts,
                                   stream);
      }
      if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
  }

  cudaError_t load(bool counts_luma) const override {
    const cudaError_t error = mixed_ ? cuda::load<Residency::kAny, General<true>>()
                                     : cuda::load<Residency::kAny, General<false>>();
    return error == cudaSuccess && counts_luma ? load_luma_count() : error;
  }

  const char* name() const override { return "general"; }

 private:
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
