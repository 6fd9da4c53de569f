#include "kernels/cuda/rematrix.cuh"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "kernels/cuda/frame_by_frame.hpp"
#include "kernels/cuda/general.hpp"
#include "kernels/cuda/rematrix.hpp"
#include "kernels/linear_transform.hpp"

namespace framelane {
namespace {

using namespace cuda;

constexpr std::uintptr_t kAlignment = 8;

/// Rounded to nearest. The error of the division is far below the unit that `window` has to spare.
std::int64_t to_fixed(std::int64_t numerator, std::int64_t denominator) {
  constexpr int kFractionBits = 32;
  return std::llround(std::ldexp(
      static_cast<long double>(numerator) / static_cast<long double>(denominator), kFractionBits));
}

/// The form, rounded half up, of luma and chroma that are scaled.
WideForm make_wide_form(const LinearForm& form, int luma_scale, int chroma_scale) {
  const std::array<int, 3> scales{luma_scale, chroma_scale, chroma_scale};
  WideForm result{};
  std::uint32_t largest_sum = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    if (form.coefficients[i] == 0) continue;
    result.coefficients[i] =
        static_cast<std::int32_t>(to_fixed(form.coefficients[i], form.denominator * scales[i]));
    largest_sum += 255U * static_cast<std::uint32_t>(scales[i]);
  }
  // Each coefficient is wrong by half a unit at most, and so is the offset: by (largest_sum + 1) /
  // 2 in all.
  result.window = largest_sum + 2;
  const LinearForm rounding = form.rounding_for_scale(1);
  result.offset = to_fixed(rounding.offset, rounding.denominator) + result.window / 2;
  const int common = std::max(luma_scale, chroma_scale);
  result.exact = make_form(form.rounding_for_scale(common));
  result.chroma_scale = common / chroma_scale;
  return result;
}

bool is_420(PixelFormat format) {
  return format == PixelFormat::kI420 || format == PixelFormat::kNv12;
}

template <Siting kSiting>
class RematrixConverter final : public FrameByFrame {
 public:
  explicit RematrixConverter(const Conversion& conversion)
      : FrameByFrame(kAlignment, make_general_cuda_converter(conversion)),
        general_(general_conversion(conversion)) {
    using Body = Rematrix<kSiting>;
    const auto forms = color_transform(conversion);
    constexpr int kSite = Body::kSiteScale;
    constexpr int kFiltered = Body::kFilteredScale;
    forms_ = {make_wide_form(forms[0], Body::kLumaScale, kSite),
              make_wide_form(forms[1], 1, kFiltered), make_wide_form(forms[2], 1, kFiltered)};
  }

  const char* name() const override { return "rematrix"; }

 private:
  cudaError_t enqueue_kernel(const CudaFrame& frame, int row_begin, int row_end,
                             cudaStream_t stream) const override {
    using Body = Rematrix<kSiting>;
    Body body{General<true>(general_, frame, row_begin, row_end), {}, 0};
    std::ranges::copy(forms_, body.forms);
    for (const WideForm& form : forms_) body.window = std::max(body.window, form.window);
    const int columns = (frame.target.width + Body::kColumns - 1) / Body::kColumns;
    const int rows = (row_end - row_begin + Body::kStep - 1) / Body::kStep;
    return launch<Residency::kAny>(columns, rows, 1, stream, body);
  }

  cudaError_t load_kernel() const override {
    return cuda::load<Residency::kAny, Rematrix<kSiting>>();
  }

  const GeneralConversion general_;
  std::array<WideForm, 3> forms_;
};

}  // namespace

std::unique_ptr<const CudaConverter> make_cuda_rematrix_converter(const Conversion& conversion) {
  if (!is_420(conversion.source) || !is_420(conversion.target) || !mixes_channels(conversion)) {
    return nullptr;
  }
  switch (conversion.source_color.siting) {
    case Siting::kCenter:
      return std::make_unique<RematrixConverter<Siting::kCenter>>(conversion);
    case Siting::kTopLeft:
      return std::make_unique<RematrixConverter<Siting::kTopLeft>>(conversion);
    default:
      return std::make_unique<RematrixConverter<Siting::kLeft>>(conversion);
  }
}

}  // namespace framelane
