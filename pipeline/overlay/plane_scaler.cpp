#include "pipeline/overlay/plane_scaler.hpp"

#include <cstddef>

#include "kernels/conversion.hpp"
#include "kernels/image_view.hpp"

namespace framelane {
namespace {

/// Of pictures in gray that are planes of bytes: no code becomes another one.
Conversion conversion_of(const PictureSize& from, const PictureSize& to, ScaleFilter filter) {
  const ColorSpec color{.range = Range::kFull};
  return {from.width,
          from.height,
          PixelFormat::kGray8,
          color,
          PixelFormat::kGray8,
          color,
          Scaling{{0, 0, from.width, from.height}, to, {0, 0, to.width, to.height}, filter}};
}

}  // namespace

std::optional<std::string> PlaneScaler::why_not(const PictureSize& from, const PictureSize& to) {
  return why_unsupported(conversion_of(from, to, ScaleFilter::kArea));
}

PlaneScaler::PlaneScaler(const PictureSize& from, const PictureSize& to, ScaleFilter filter)
    : from_(from), to_(to), converter_(Converter::make(conversion_of(from, to, filter))) {}

std::vector<std::uint8_t> PlaneScaler::scaled(const std::vector<std::uint8_t>& plane) const {
  std::vector<std::uint8_t> result(static_cast<std::size_t>(to_.width) *
                                   static_cast<std::size_t>(to_.height));
  converter_->run({PixelFormat::kGray8, from_.width, from_.height, {{{plane.data(), from_.width}}}},
                  {PixelFormat::kGray8, to_.width, to_.height, {{{result.data(), to_.width}}}}, 0,
                  to_.height);
  return result;
}

}  // namespace framelane
