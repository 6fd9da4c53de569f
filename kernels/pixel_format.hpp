#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace framelane {

/// Memory layouts of 8-bit video frames. The range is not part of a layout: FFmpeg's "J" formats
/// (yuvj420p …) are the plain ones with ColorSpec::range full. Formats with an unused byte (bgr0,
/// 0rgb …) have the layout of those with alpha, which is ignored.
enum class PixelFormat : std::uint8_t {
  kBgra,
  kRgba,
  kArgb,
  kAbgr,
  kBgr24,
  kRgb24,
  kI420,    ///< Y, U, V planes; chroma halved both ways
  kNv12,    ///< Y plane, interleaved UV plane; chroma halved both ways
  kI422,    ///< Y, U, V planes; chroma halved across
  kYuyv,    ///< one plane, Y0 U Y1 V
  kUyvy,    ///< one plane, U Y0 V Y1
  kI444,    ///< Y, U, V planes
  kYuv444,  ///< one plane, Y U V per pixel (benchmarks only: no encoder takes it)
  kGray8,
};
inline constexpr int kPixelFormatCount = 14;
inline constexpr int kMaxPlanes = 3;

/// The shape of one plane relative to the frame: a row has ceil(width / 2^log2_width_step) groups
/// of samples of `bytes_per_sample` bytes each (2 for a UV pair of NV12, 4 for a pixel pair of
/// YUYV), and there are ceil(height / 2^log2_height_step) rows.
struct PlaneLayout {
  std::uint8_t log2_width_step = 0;
  std::uint8_t log2_height_step = 0;
  std::uint8_t bytes_per_sample = 0;
};

struct PixelFormatInfo {
  /// FFmpeg's name of the layout: "bgra", "yuv420p", "nv12"; kYuv444, which has none, is "yuv444".
  std::string_view name;
  int plane_count;
  std::array<PlaneLayout, kMaxPlanes> planes;
  bool rgb;
  bool gray;
  bool chroma_half_width;
  bool chroma_half_height;
};

/// Any thread. Never fails for an enumerator.
const PixelFormatInfo& info(PixelFormat format);

/// The layout with this PixelFormatInfo::name, or nothing.
std::optional<PixelFormat> pixel_format_from_name(std::string_view name);

/// The bytes of one row of `plane`, without padding, and the number of its rows, for a frame of
/// that width or height in pixels.
std::size_t plane_row_bytes(PixelFormat format, int plane, int width);
int plane_rows(PixelFormat format, int plane, int height);

}  // namespace framelane
