#include "pipeline/feed/smaller_source.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>

namespace framelane {

std::string smaller_source_advice(const FeedOptions& options,
                                  std::span<const Conversion> conversions) {
  // Keyframes alone cost little.
  if (conversions.empty() || options.input.skip == Skip::kNonKey) return {};
  PictureSize largest;
  for (const Conversion& conversion : conversions) {
    const auto& scaling = conversion.scaling;
    if (!scaling) return {};
    const auto [width, height] = scaling->orientation.turned(scaling->crop.size());
    const PictureSize made = scaling->place.size();
    if (3 * made.width > width || 3 * made.height > height) return {};
    const auto area = [](const PictureSize& size) {
      return std::int64_t{size.width} * size.height;
    };
    if (area(made) > area(largest)) largest = made;
  }
  const Conversion& any = conversions.front();
  const std::string what = fmt::format(
      "{} {}x{}, and its largest encode shows {}x{}: ", options.input.raw ? "reads" : "decodes",
      any.width, any.height, largest.width, largest.height);
  if (options.input.raw) return what + "smaller pictures from their producer would cost far less";
  const bool copies = std::ranges::any_of(options.encodes, &EncodeOptions::copy_video);
  return fmt::format(
      "{}a camera's second, smaller stream as input.url{} would cost far less; or set skip, if few "
      "pictures are enough",
      what, copies ? " of a second feed" : "");
}

}  // namespace framelane
