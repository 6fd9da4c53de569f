#include "pipeline/overlay/overlay_image.hpp"

#include <png.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <system_error>

#include "pipeline/base/failure.hpp"
#include "pipeline/overlay/plane_scaler.hpp"

namespace framelane {
namespace {

[[noreturn]] void refuse(const std::string& file, const std::string& why) {
  throw FeedError(FeedFault::kConfiguration, "the image " + file + ' ' + why);
}

/// libpng's simplified interface, which reads every kind of PNG as 8-bit R, G, B and alpha.
struct PngFile {
  PngFile() { image.version = PNG_IMAGE_VERSION; }
  ~PngFile() { png_image_free(&image); }
  PngFile(const PngFile&) = delete;
  PngFile& operator=(const PngFile&) = delete;

  png_image image{};
};

}  // namespace

RgbaPicture read_png(const std::string& file) {
  // Opening a pipe would block.
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) {
    refuse(file, error ? "cannot be read: " + error.message() : "is not a regular file");
  }
  PngFile png;
  if (png_image_begin_read_from_file(&png.image, file.c_str()) == 0) {
    refuse(file, std::string("cannot be read: ") + png.image.message + "; give a PNG file");
  }
  if (png.image.width > kMaxOverlayImageSide || png.image.height > kMaxOverlayImageSide) {
    refuse(file, "is " + std::to_string(png.image.width) + 'x' + std::to_string(png.image.height) +
                     ", and at most " + std::to_string(kMaxOverlayImageSide) +
                     " pixels a side are allowed");
  }
  png.image.format = PNG_FORMAT_RGBA;
  RgbaPicture picture{static_cast<int>(png.image.width), static_cast<int>(png.image.height), {}};
  picture.pixels.resize(PNG_IMAGE_SIZE(png.image));
  if (png_image_finish_read(&png.image, nullptr, picture.pixels.data(), 0, nullptr) == 0) {
    refuse(file, std::string("cannot be read: ") + png.image.message);
  }
  return picture;
}

RgbaPicture scaled(const RgbaPicture& picture, const PictureSize& size) {
  const PictureSize from{picture.width, picture.height};
  if (size == from) return picture;
  if (const auto why = PlaneScaler::why_not(from, size)) {
    throw FeedError(FeedFault::kConfiguration,
                    *why + "; choose another width, or an image of another size");
  }
  const PlaneScaler scaler(from, size, ScaleFilter::kBicubic);
  const auto pixels =
      static_cast<std::size_t>(picture.width) * static_cast<std::size_t>(picture.height);
  // Alpha, and colours multiplied by it, each as a gray picture.
  std::array<std::vector<std::uint8_t>, 4> planes;
  std::vector<std::uint8_t> plane(pixels);
  for (std::size_t k = 0; k < planes.size(); ++k) {
    for (std::size_t i = 0; i < pixels; ++i) {
      const std::uint8_t* const pixel = &picture.pixels[4 * i];
      plane[i] = k == 3 ? pixel[3] : static_cast<std::uint8_t>((pixel[k] * pixel[3] + 127) / 255);
    }
    planes[k] = scaler.scaled(plane);
  }
  const std::size_t scaled_pixels = planes.front().size();
  RgbaPicture result{size.width, size.height, {}};
  result.pixels.resize(4 * scaled_pixels);
  for (std::size_t i = 0; i < scaled_pixels; ++i) {
    const int alpha = planes[3][i];
    for (std::size_t k = 0; k < 3; ++k) {
      const int color = alpha == 0 ? 0 : (planes[k][i] * 255 + alpha / 2) / alpha;
      result.pixels[4 * i + k] = static_cast<std::uint8_t>(std::min(color, 255));
    }
    result.pixels[4 * i + 3] = static_cast<std::uint8_t>(alpha);
  }
  return result;
}

void fade(RgbaPicture& picture, double opacity) {
  for (std::size_t i = 3; i < picture.pixels.size(); i += 4) {
    picture.pixels[i] = static_cast<std::uint8_t>(std::lround(picture.pixels[i] * opacity));
  }
}

}  // namespace framelane
