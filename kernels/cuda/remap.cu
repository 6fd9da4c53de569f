#include "kernels/cuda/remap.cuh"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>

#include "kernels/cuda/general.hpp"
#include "kernels/cuda/remap.hpp"

namespace framelane {
namespace {

using namespace cuda;

/// The map that gives exactly what the form does, which depends on one channel alone, for all 256
/// bytes; nothing when fixed point cannot.
std::optional<ByteMap> find_byte_map(const LinearForm& exact, std::size_t channel) {
  const LinearForm form = exact.rounding_for_scale(1);
  constexpr std::int64_t kOne = std::int64_t{1} << ByteMap::kFraction;
  const auto factor =
      static_cast<std::int64_t>(std::llround(static_cast<double>(form.coefficients[channel]) *
                                             kOne / static_cast<double>(form.denominator)));
  // Each byte bounds the offset, from below unless it becomes 0 and from above unless it becomes
  // 255.
  std::int64_t least = -kOne * 256;
  std::int64_t most = kOne * 256;
  for (int byte = 0; byte < 256; ++byte) {
    Samples samples{};
    samples[channel] = byte;
    const std::int64_t result = form.floor_to_byte(samples);
    if (result > 0) least = std::max(least, result * kOne - byte * factor);
    if (result < 255) most = std::min(most, (result + 1) * kOne - 1 - byte * factor);
  }
  if (least > most) return std::nullopt;
  return ByteMap{static_cast<std::int32_t>(factor), static_cast<std::int32_t>(least)};
}

/// Luma in a plane of its own, chroma in one or two.
bool is_planar(PixelFormat format) {
  const auto channel = channels(ConstImageView{.format = format});
  return !info(format).rgb && channel[0].step == 1 && channel[1].step <= 2 && channel[2].step <= 2;
}

class RemapConverter final : public CudaConverter {
 public:
  RemapConverter(const Conversion& conversion, const std::array<ByteMap, 3>& maps)
      : maps_(maps),
        chroma_(!info(conversion.target).gray),
        half_height_(info(conversion.target).chroma_half_height),
        general_(make_general_cuda_converter(conversion)) {}

  using CudaConverter::enqueue;
  cudaError_t enqueue(std::span<const CudaFrame> frames, int row_begin, int row_end,
                      cudaStream_t stream) const override {
    for (const CudaFrame& frame : frames) {
      const bool aligned =
          is_aligned(frame.source, Remap::kColumns) && is_aligned(frame.target, Remap::kColumns);
      const cudaError_t error = aligned
                                    ? launch_one(frame, row_begin, row_end, stream)
                                    : general_->enqueue({&frame, 1}, row_begin, row_end, stream);
      if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
  }

  cudaError_t load() const override {
    const cudaError_t error = cuda::load<Residency::kAny, Remap>();
    return error != cudaSuccess ? error : general_->load();
  }

  const char* name() const override { return "remap"; }

 private:
  cudaError_t launch_one(const CudaFrame& frame, int row_begin, int row_end,
                         cudaStream_t stream) const {
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

  const std::array<ByteMap, 3> maps_;
  const bool chroma_;
  const bool half_height_;
  const std::unique_ptr<const CudaConverter> general_;
};

}  // namespace

std::unique_ptr<const CudaConverter> make_cuda_remap_converter(const Conversion& conversion) {
  const PixelFormatInfo& source = info(conversion.source);
  const PixelFormatInfo& target = info(conversion.target);
  const bool same_grid = source.chroma_half_width == target.chroma_half_width &&
                         source.chroma_half_height == target.chroma_half_height &&
                         source.gray == target.gray;
  if (!is_planar(conversion.source) || !is_planar(conversion.target) ||
      !(same_grid || target.gray) ||
      (conversion.source_color.matrix != conversion.target_color.matrix && !source.gray)) {
    return nullptr;
  }
  ColorSpec from = conversion.source_color;
  if (source.gray) from.matrix = conversion.target_color.matrix;
  const auto forms = color_transform(from, conversion.target_color);
  std::array<ByteMap, 3> maps{};
  for (std::size_t i = 0; i < maps.size(); ++i) {
    const std::optional<ByteMap> map = find_byte_map(forms[i], i);
    if (!map) return nullptr;
    maps[i] = *map;
  }
  return std::make_unique<RemapConverter>(conversion, maps);
}

}  // namespace framelane
