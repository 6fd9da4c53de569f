#include "kernels/picture_part.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "kernels/linear_transform.hpp"
#include "kernels/sample_runs.hpp"

namespace framelane {
namespace {

template <typename Byte>
BasicImageView<Byte> part_of(BasicImageView<Byte> image, const Rect& part) {
  const PixelFormatInfo& format = info(image.format);
  image.width = part.width;
  image.height = part.height;
  for (int i = 0; i < format.plane_count; ++i) {
    const PlaneLayout& layout = format.planes[static_cast<std::size_t>(i)];
    auto& plane = image.planes[static_cast<std::size_t>(i)];
    plane.data +=
        (part.y >> layout.log2_height_step) * plane.pitch +
        static_cast<std::ptrdiff_t>(part.x >> layout.log2_width_step) * layout.bytes_per_sample;
  }
  return image;
}

}  // namespace

ConstImageView cropped(const ConstImageView& image, const Rect& crop) {
  return part_of(image, crop);
}
ImageView cropped(const ImageView& image, const Rect& crop) { return part_of(image, crop); }

std::array<ConstChannel, 3> turned(std::array<ConstChannel, 3> channels,
                                   const Orientation& orientation) {
  for (ConstChannel& channel : channels) {
    if (orientation.transposed) {
      const int pitch = static_cast<int>(channel.pitch);
      channel.pitch = std::exchange(channel.step, pitch);
      std::swap(channel.width, channel.height);
      std::swap(channel.half_width, channel.half_height);
    }
    if (orientation.mirrored) {
      channel.data = &channel.at(channel.width - 1, 0);
      channel.step = -channel.step;
    }
    if (orientation.upside_down) {
      channel.data = &channel.at(0, channel.height - 1);
      channel.pitch = -channel.pitch;
    }
  }
  return channels;
}

std::array<std::uint8_t, 3> background_codes(const Conversion& conversion) {
  return codes_of(conversion.scaling->background, conversion.target_color);
}

void fill_run(const Channel& channel, int y, int begin, int end, std::uint8_t code) {
  if (begin < end) fill_samples(&channel.at(begin, y), channel.step, end - begin, code);
}

void fill_background(const Rect& place, const std::array<std::uint8_t, 3>& codes,
                     const ImageView& target, int row_begin, int row_end) {
  if (place == Rect{0, 0, target.width, target.height}) return;
  const auto to = channels(target);
  for (std::size_t k = 0; k < (info(target.format).gray ? 1 : 3); ++k) {
    const Channel& channel = to[k];
    const int across = channel.half_width ? 1 : 0;
    const int down = channel.half_height ? 1 : 0;
    const int left = place.x >> across;
    const int right = (place.x + place.width + across) >> across;
    const int top = place.y >> down;
    const int bottom = (place.y + place.height + down) >> down;
    for (int y = row_begin >> down; y < (row_end + down) >> down; ++y) {
      const bool beside = y >= top && y < bottom;
      fill_run(channel, y, 0, beside ? left : channel.width, codes[k]);
      if (beside) fill_run(channel, y, right, channel.width, codes[k]);
    }
  }
}

}  // namespace framelane
