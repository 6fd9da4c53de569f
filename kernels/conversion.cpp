#include "kernels/conversion.hpp"

namespace framelane {
namespace {

constexpr int kMaxSide = 16384;

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

}  // namespace

bool is_identity(const Conversion& conversion) {
  if (conversion.source != conversion.target) return false;
  const PixelFormatInfo& format = info(conversion.source);
  const ColorSpec& from = conversion.source_color;
  const ColorSpec& to = conversion.target_color;
  return from.range == to.range && (format.gray || from.matrix == to.matrix) &&
         !moves_chroma(format, from.siting, format, to.siting);
}

std::optional<std::string> why_unsupported(const Conversion& conversion) {
  const auto& [width, height, source, source_color, target, target_color] = conversion;
  if (width < 1 || height < 1 || width > kMaxSide || height > kMaxSide) {
    return "size " + std::to_string(width) + "x" + std::to_string(height) +
           " is outside 1x1 to 16384x16384";
  }
  if (auto reason = why_color_misfits("source", source, source_color)) return reason;
  if (auto reason = why_color_misfits("target", target, target_color)) return reason;
  if (is_identity(conversion)) return std::nullopt;

  const PixelFormatInfo& from = info(source);
  const PixelFormatInfo& to = info(target);
  if (to.rgb) return "target format " + quoted(target) + " is RGB; targets are YUV";
  if (target == PixelFormat::kYuyv || target == PixelFormat::kUyvy) {
    return "target format " + quoted(target) + " is a source format only; use yuv422p";
  }
  const bool target_has_chroma = !to.gray;
  if (target_has_chroma && ((from.chroma_half_width && !to.chroma_half_width) ||
                            (from.chroma_half_height && !to.chroma_half_height))) {
    return "converting " + quoted(source) + " to " + quoted(target) +
           " would raise the chroma resolution";
  }
  if (halves_chroma(from) && moves_chroma(from, source_color.siting, to, target_color.siting)) {
    return "chroma siting cannot change from " + std::string(to_string(source_color.siting)) +
           " to " + std::string(to_string(target_color.siting));
  }
  return std::nullopt;
}

}  // namespace framelane
