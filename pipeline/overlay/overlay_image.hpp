#pragma once

#include <string>

#include "kernels/overlay.hpp"
#include "kernels/scaling.hpp"

namespace framelane {

/// The largest side of an image.
inline constexpr int kMaxOverlayImageSide = 8192;

/// Reads a PNG file of any kind; what has no alpha is opaque. Throws FeedError(kConfiguration) with
/// the file's name and the reason.
RgbaPicture read_png(const std::string& file);

/// The picture in another size, as `convert.size` scales, without colour from where nothing is
/// seen. Throws FeedError(kConfiguration) if it would become smaller than a 64th.
RgbaPicture scaled(const RgbaPicture& picture, const PictureSize& size);

/// Multiplies its alpha.
void fade(RgbaPicture& picture, double opacity);

}  // namespace framelane
