#include "kernels/cuda/scale.cuh"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <vector>

#include "kernels/cuda/frame_by_frame.hpp"
#include "kernels/cuda/scale.hpp"
#include "kernels/cuda/scale_constants.cuh"
#include "kernels/cuda/scale_matrix.hpp"
#include "kernels/cuda/scale_tile.hpp"
#include "kernels/picture_part.hpp"
#include "kernels/scaled_reference.hpp"

namespace framelane {
namespace {

using namespace cuda;

class ScaleConverter final : public FrameByFrame {
 public:
  explicit ScaleConverter(const Conversion& conversion)
      : conversion_(conversion), background_(background_codes(conversion)), samples_(conversion) {
    for (const std::size_t channel : {0, 1}) {
      const WholeNumbers whole = whole_numbers(samples_, channel);
      for (const ScaleTerm& term : samples_.terms(channel)) terms_.emplace_back(term, whole);
    }
    for (std::size_t k = 0; k < 3; ++k) forms_[k] = make_form(k);
  }

  std::size_t constant_bytes() const override {
    std::size_t bytes = 0;
    for (const TermConstants& term : terms_) bytes += term.bytes();
    return bytes;
  }
  void write_constants(std::uint8_t* to) const override {
    for (const TermConstants& term : terms_) {
      term.across.write(to);
      term.down.write(to + term.across.bytes());
      to += term.bytes();
    }
  }

  const char* name() const override { return "scale"; }

 private:
  /// The form in floats, with what its value may be wrong by: the error of each sum is at most the
  /// number of its roundings, times half the distance of floats, times the sum of its absolute
  /// terms.
  ScaleForm make_form(std::size_t channel) const {
    const LinearForm& form = samples_.form(channel);
    const auto real = [&form](std::int64_t number) {
      return static_cast<double>(number) / static_cast<double>(form.denominator);
    };
    ScaleForm result{};
    const double offset = real(form.offset) + 0.5;
    const std::int64_t divisor = whole_numbers(samples_, channel == 0 ? 0 : 1).divisor();
    if (divisor > 0) {
      result.factors[channel] = 1.0F / static_cast<float>(divisor);
      result.offset = static_cast<float>(offset + 0.25 / static_cast<double>(divisor));
      return result;
    }
    double size = std::abs(offset) + 1;
    double error = 0;
    const std::size_t first_term = channel == 0 ? 0 : samples_.terms(0).size();
    for (std::size_t t = 0; t < samples_.terms(channel).size(); ++t) {
      const auto& [term, across, down] = terms_[first_term + t];
      const double of_row = 255 * across.amplitude;
      const double of_sum = of_row * down.amplitude;
      const double row_error = (across.table.taps() + 1) * kFloatUnit * of_row;
      const double sum_error =
          down.amplitude * row_error + (down.table.taps() + 1) * kFloatUnit * of_sum;
      for (int c = 0; c < term.channels; ++c) {
        const auto k = static_cast<std::size_t>(term.first_channel + c);
        const double factor = real(form.coefficients[k]);
        result.factors[k] = static_cast<float>(factor);
        size += std::abs(factor) * of_sum;
        error += std::abs(factor) * sum_error;
      }
    }
    error = 1.01 * (error + 6 * kFloatUnit * size);
    result.offset = static_cast<float>(offset + error);
    result.window = static_cast<float>(2 * error);
    return result;
  }

  cudaError_t enqueue_kernel(const CudaFrame& frame, int row_begin, int row_end,
                             cudaStream_t stream) const override {
    const Scaling& scaling = *conversion_.scaling;
    const PixelFormatInfo& target = info(conversion_.target);
    Scale body{};
    locate(conversion_.source,
           turned(channels(cropped(frame.source, scaling.crop)), scaling.orientation), body.from);
    locate(frame.target, body.to);
    const Rect& place = scaling.place;
    const int across = target.chroma_half_width ? 1 : 0;
    const int down = target.chroma_half_height ? 1 : 0;
    body.places[0] = {place.x, place.y, place.width, place.height};
    body.places[1] = {place.x >> across, place.y >> down, (place.width + across) >> across,
                      (place.height + down) >> down};
    const std::uint8_t* at = frame.constants;
    std::size_t t = 0;
    for (; t < samples_.terms(0).size(); ++t) body.luma[t] = terms_[t].view(at);
    body.luma_terms = static_cast<int>(t);
    body.has_chroma = t < terms_.size();
    if (body.has_chroma) body.chroma = terms_[t].view(at);
    assert(frame.constants != nullptr);
    for (std::size_t k = 0; k < 3; ++k) {
      body.forms[k] = forms_[k];
      body.exact[k] = samples_.sum_form(k);
      body.background[k] = background_[k];
    }
    body.luma_begin = row_begin;
    body.luma_rows = row_end - row_begin;
    body.chroma_begin = row_begin >> down;
    const int chroma_rows = target.gray ? 0 : ((row_end + down) >> down) - body.chroma_begin;
    return launch<Residency::kAny>(frame.target.width, body.luma_rows + chroma_rows, 1, stream,
                                   body);
  }

  cudaError_t load_kernel() const override { return cuda::load<Residency::kAny, Scale>(); }

  const Conversion conversion_;
  const std::array<std::uint8_t, 3> background_;
  const ScaledSamples samples_;
  std::vector<TermConstants> terms_;  // of luma, then of chroma
  std::array<ScaleForm, 3> forms_{};
};

}  // namespace

std::unique_ptr<const CudaConverter> make_cuda_scale_converter(const Conversion& conversion) {
  if (conversion.scaling->orientation == Orientation{}) {
    if (auto matrix = make_cuda_scale_matrix_converter(conversion)) return matrix;
    if (auto tiles = make_cuda_scale_tile_converter(conversion)) return tiles;
  }
  return std::make_unique<ScaleConverter>(conversion);
}

}  // namespace framelane
