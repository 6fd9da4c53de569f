#pragma once

#include <optional>
#include <string>

#include "kernels/color_spec.hpp"
#include "kernels/pixel_format.hpp"

namespace framelane {

/// What to do to a frame for one encode.
struct Conversion {
  int width = 0;
  int height = 0;
  PixelFormat source = PixelFormat::kBgra;
  ColorSpec source_color;
  PixelFormat target = PixelFormat::kNv12;
  ColorSpec target_color;

  friend bool operator==(const Conversion&, const Conversion&) = default;
};

/// True when source and target hold the same bytes: the frame bypasses the stage. Primaries and
/// transfer do not count, nor does what the format has no use for (gray: matrix; 4:4:4: siting).
bool is_identity(const Conversion& conversion);

/// Why this conversion cannot be done, as one sentence that names the format, size or colour at
/// fault; nothing when it can. Not supported: a target that is RGB or packed YUYV/UYVY (unless the
/// conversion is an identity), a size below 1x1 or above 16384x16384, raising the chroma
/// resolution, changing the siting of subsampled chroma, a matrix that does not fit its format (RGB
/// with a YUV matrix; YUV or gray with kRgb).
std::optional<std::string> why_unsupported(const Conversion& conversion);

}  // namespace framelane
