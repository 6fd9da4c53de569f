#include "kernels/pixel_format.hpp"

namespace framelane {
namespace {

constexpr PixelFormatInfo packed_rgb(std::string_view name, std::uint8_t bytes) {
  return {name, 1, {{{0, 0, bytes}}}, true, false, false, false};
}

// In the order of PixelFormat's enumerators.
constexpr std::array<PixelFormatInfo, kPixelFormatCount> kFormats = {{
    packed_rgb("bgra", 4),
    packed_rgb("rgba", 4),
    packed_rgb("argb", 4),
    packed_rgb("abgr", 4),
    packed_rgb("bgr24", 3),
    packed_rgb("rgb24", 3),
    {"yuv420p", 3, {{{0, 0, 1}, {1, 1, 1}, {1, 1, 1}}}, false, false, true, true},
    {"nv12", 2, {{{0, 0, 1}, {1, 1, 2}}}, false, false, true, true},
    {"yuv422p", 3, {{{0, 0, 1}, {1, 0, 1}, {1, 0, 1}}}, false, false, true, false},
    {"yuyv422", 1, {{{1, 0, 4}}}, false, false, true, false},
    {"uyvy422", 1, {{{1, 0, 4}}}, false, false, true, false},
    {"yuv444p", 3, {{{0, 0, 1}, {0, 0, 1}, {0, 0, 1}}}, false, false, false, false},
    {"yuv444", 1, {{{0, 0, 3}}}, false, false, false, false},
    {"gray", 1, {{{0, 0, 1}}}, false, true, false, false},
}};

constexpr int ceil_shift(int value, int shift) { return (value + (1 << shift) - 1) >> shift; }

}  // namespace

const PixelFormatInfo& info(PixelFormat format) {
  return kFormats[static_cast<std::size_t>(format)];
}

std::optional<PixelFormat> pixel_format_from_name(std::string_view name) {
  for (std::size_t i = 0; i < kFormats.size(); ++i) {
    if (kFormats[i].name == name) return static_cast<PixelFormat>(i);
  }
  return std::nullopt;
}

std::size_t plane_row_bytes(PixelFormat format, int plane, int width) {
  const PlaneLayout& layout = info(format).planes[plane];
  return static_cast<std::size_t>(ceil_shift(width, layout.log2_width_step)) *
         layout.bytes_per_sample;
}

int plane_rows(PixelFormat format, int plane, int height) {
  return ceil_shift(height, info(format).planes[plane].log2_height_step);
}

}  // namespace framelane
