#include "kernels/conversion.hpp"

#include <algorithm>
#include <cstdint>

#include "kernels/picture_limits.hpp"

namespace framelane {
namespace {

bool halves_chroma(const PixelFormatInfo& format) {
  return format.chroma_half_width || format.chroma_half_height;
}

std::string quoted(PixelFormat format) { return std::string(info(format).name); }

std::optional<std::string> why_color_misfits(const char* role, PixelFormat format,
                                             const ColorSpec& color) {
  if (info(format).rgb == (color.matrix == Matrix::kRgb)) return std::nullopt;
  return std::string(role) + " format " + quoted(format) + " cannot have matrix " +
         std::string(to_string(color.matrix));
}

// True if chroma that both sides subsample sits at different positions. Across a row, left and
// top-left are the same position; down a column, only 4:2:0 subsamples.
bool moves_chroma(const PixelFormatInfo& source, Siting from, const PixelFormatInfo& target,
                  Siting to) {
  const bool across = source.chroma_half_width && target.chroma_half_width &&
                      (from == Siting::kCenter) != (to == Siting::kCenter);
  const bool down = source.chroma_half_height && target.chroma_half_height &&
                    (from == Siting::kTopLeft) != (to == Siting::kTopLeft);
  return across || down;
}

std::string text_of(const Rect& rect) {
  return std::to_string(rect.width) + "x" + std::to_string(rect.height) + "+" +
         std::to_string(rect.x) + "+" + std::to_string(rect.y);
}

std::string text_of(const PictureSize& size) {
  return std::to_string(size.width) + "x" + std::to_string(size.height);
}

std::optional<std::string> why_outside_limits(const PictureSize& size) {
  const auto fits = [](int side) { return side >= 1 && side <= kMaxPictureSide; };
  if (fits(size.width) && fits(size.height)) return std::nullopt;
  return "size " + text_of(size) + " is outside 1x1 to " +
         text_of(PictureSize{kMaxPictureSide, kMaxPictureSide});
}

/// True if the part begins and ends at whole samples of chroma, or at the picture's edge.
bool takes_whole_samples(const PixelFormatInfo& format, const Rect& part,
                         const PictureSize& picture) {
  const auto fits = [](int begin, int size, int whole, bool half) {
    return !half || (begin % 2 == 0 && (size % 2 == 0 || begin + size == whole));
  };
  return fits(part.x, part.width, picture.width, format.chroma_half_width) &&
         fits(part.y, part.height, picture.height, format.chroma_half_height);
}

bool lies_within(const Rect& part, const PictureSize& picture) {
  return part.x >= 0 && part.y >= 0 && part.width > 0 && part.height > 0 &&
         part.width <= picture.width - part.x && part.height <= picture.height - part.y;
}

std::optional<std::string> why_not_scaled(const Conversion& conversion) {
  const auto& [crop, target, place, filter, background, orientation] = *conversion.scaling;
  const PictureSize source{conversion.width, conversion.height};
  if (auto reason = why_outside_limits(target)) return reason;
  const struct {
    const char* what;
    const Rect& part;
    const PictureSize& picture;
    PixelFormat format;
  } parts[] = {{"crop", crop, source, conversion.source},
               {"place", place, target, conversion.target}};
  for (const auto& [what, part, picture, format] : parts) {
    if (!lies_within(part, picture)) {
      return std::string(what) + ' ' + text_of(part) + " lies outside the picture of " +
             text_of(picture);
    }
    if (!takes_whole_samples(info(format), part, picture)) {
      return std::string(what) + ' ' + text_of(part) + " cuts samples of chroma of " +
             quoted(format) + " in two: use even numbers";
    }
  }
  const PictureSize turned = orientation.turned(crop.size());
  if (turned.width > kMostReduction * place.width ||
      turned.height > kMostReduction * place.height) {
    return text_of(place.size()) + " is less than a " + std::to_string(kMostReduction) + "th of " +
           text_of(turned);
  }
  return std::nullopt;
}

}  // namespace

bool is_identity(const Conversion& conversion) {
  if (conversion.source != conversion.target || conversion.scaling) return false;
  const PixelFormatInfo& format = info(conversion.source);
  const ColorSpec& from = conversion.source_color;
  const ColorSpec& to = conversion.target_color;
  return from.range == to.range && (format.gray || from.matrix == to.matrix) &&
         !moves_chroma(format, from.siting, format, to.siting);
}

bool is_bypass(const Conversion& conversion) {
  return !conversion.overlaid && is_identity(conversion);
}

RowRange source_rows(const Conversion& conversion, const RowRange& target_rows) {
  constexpr int kAround = 8;  // for chroma that is interpolated, and for roundings
  if (!conversion.scaling) {
    return {std::max(target_rows.begin - kAround, 0),
            std::min(target_rows.end + kAround, conversion.height)};
  }
  const Rect& crop = conversion.scaling->crop;
  const Rect& place = conversion.scaling->place;
  const Orientation& orientation = conversion.scaling->orientation;
  const int begin = std::max(target_rows.begin - place.y, 0);
  const int end = std::min(target_rows.end - place.y, place.height);
  if (begin >= end) return {};
  if (orientation.transposed) return {crop.y, crop.y + crop.height};
  // Filters reach up to three samples, which are up to two pixels apart, of the source or of the
  // target; and chroma is up to two of the target's pixels away from luma.
  const auto in_source = [&](int rows) { return std::int64_t{rows} * crop.height / place.height; };
  const auto around = std::max<std::int64_t>(8, in_source(8) + 1) + kAround;
  const auto first = static_cast<int>(std::max<std::int64_t>(in_source(begin) - around, 0));
  const auto last = static_cast<int>(std::min<std::int64_t>(in_source(end) + around, crop.height));
  if (orientation.upside_down) return {crop.y + crop.height - last, crop.y + crop.height - first};
  return {crop.y + first, crop.y + last};
}

std::optional<std::string> why_unsupported(const Conversion& conversion) {
  const auto& [width, height, source, source_color, target, target_color, scaling, overlaid] =
      conversion;
  if (auto reason = why_outside_limits({width, height})) return reason;
  if (auto reason = why_color_misfits("source", source, source_color)) return reason;
  if (auto reason = why_color_misfits("target", target, target_color)) return reason;
  if (is_identity(conversion)) return std::nullopt;

  const PixelFormatInfo& from = info(source);
  const PixelFormatInfo& to = info(target);
  if (scaling) {
    if (auto reason = why_not_scaled(conversion)) return reason;
  }
  if (to.rgb) return "target format " + quoted(target) + " is RGB; targets are YUV";
  if (target == PixelFormat::kYuyv || target == PixelFormat::kUyvy) {
    return "target format " + quoted(target) + " is a source format only; use yuv422p";
  }
  const bool transposed = scaling && scaling->orientation.transposed;
  const bool half_across = transposed ? from.chroma_half_height : from.chroma_half_width;
  const bool half_down = transposed ? from.chroma_half_width : from.chroma_half_height;
  const bool target_has_chroma = !to.gray;
  if (target_has_chroma &&
      ((half_across && !to.chroma_half_width) || (half_down && !to.chroma_half_height))) {
    return "converting " + quoted(source) + " to " + quoted(target) +
           (transposed ? ", turned, would raise the chroma resolution"
                       : " would raise the chroma resolution");
  }
  if (!scaling && halves_chroma(from) &&
      moves_chroma(from, source_color.siting, to, target_color.siting)) {
    return "chroma siting cannot change from " + std::string(to_string(source_color.siting)) +
           " to " + std::string(to_string(target_color.siting));
  }
  return std::nullopt;
}

}  // namespace framelane
