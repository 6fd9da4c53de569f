#pragma once

#include <optional>
#include <string>

#include "kernels/color_spec.hpp"
#include "kernels/image_view.hpp"
#include "kernels/pixel_format.hpp"
#include "kernels/scaling.hpp"

namespace framelane {

/// What is done to a frame for one encode. Sizes are in pixels.
struct Conversion {
  int width = 0;  ///< of the source
  int height = 0;
  PixelFormat source = PixelFormat::kBgra;
  ColorSpec source_color;
  PixelFormat target = PixelFormat::kNv12;
  ColorSpec target_color;
  std::optional<Scaling> scaling{};  ///< nothing: the target has the source's size
  bool overlaid = false;             ///< overlays are drawn on the target afterwards

  PictureSize target_size() const { return scaling ? scaling->target : PictureSize{width, height}; }

  friend bool operator==(const Conversion&, const Conversion&) = default;
};

/// True if source and target hold the same bytes, so that nothing has to be converted. Primaries
/// and transfer are ignored, and so is what the format has no use for (gray: matrix; 4:4:4:
/// siting).
bool is_identity(const Conversion& conversion);

/// True if the source itself can be handed on: it holds the same bytes, and nothing is drawn on it.
bool is_bypass(const Conversion& conversion);

/// The rows of the source that rows of the target are made of, and some around them. Requires
/// !why_unsupported.
RowRange source_rows(const Conversion& conversion, const RowRange& target_rows);

/// Why this conversion cannot be done, as one sentence that names the wrong format, size or colour;
/// nothing if it can be done. Not supported are:
/// - a target that is RGB or packed YUYV/UYVY, unless the conversion is an identity;
/// - a size below 1x1 or above 16384x16384;
/// - raising the chroma resolution;
/// - changing the siting of subsampled chroma where a picture is not scaled;
/// - scaling from or to parts that are not whole samples of chroma, and to less than a 64th;
/// - a matrix that does not fit its format (RGB with a YUV matrix; YUV or gray with kRgb).
std::optional<std::string> why_unsupported(const Conversion& conversion);

}  // namespace framelane
