#include "bench/harness/pictures.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>

#include "bench/harness/turns.hpp"
#include "kernels/reference.hpp"
#include "pipeline/base/processors.hpp"

namespace framelane::bench {
namespace {

/// Calls `each(plane, y, bytes)` for every row.
template <typename Each>
void for_each_row(PixelFormat format, int width, int height, const Each& each) {
  for (int plane = 0; plane < info(format).plane_count; ++plane) {
    const std::size_t bytes = plane_row_bytes(format, plane, width);
    for (int y = 0; y < plane_rows(format, plane, height); ++y) each(plane, y, bytes);
  }
}

}  // namespace

Conversion conversion(PixelFormat source, PixelFormat target, const Size& size) {
  Conversion result;
  result.width = size.width;
  result.height = size.height;
  result.source = source;
  result.target = target;
  result.source_color.range = Range::kFull;
  if (info(source).rgb) result.source_color.matrix = Matrix::kRgb;
  return result;
}

std::size_t image_bytes(PixelFormat format, const Size& size) {
  std::size_t bytes = 0;
  for (int plane = 0; plane < info(format).plane_count; ++plane) {
    bytes += plane_row_bytes(format, plane, size.width) *
             static_cast<std::size_t>(plane_rows(format, plane, size.height));
  }
  return bytes;
}

std::size_t made_bytes(std::span<const Conversion> conversions) {
  std::size_t bytes = 0;
  for (const Conversion& conversion : conversions) {
    const auto [width, height] = conversion.target_size();
    bytes += image_bytes(conversion.target, {"", width, height});
  }
  return bytes;
}

std::size_t moved_bytes(const Conversion& conversion) {
  return image_bytes(conversion.source, {"", conversion.width, conversion.height}) +
         made_bytes({&conversion, 1});
}

std::vector<PooledImage> make_frames(FramePool& pool, PixelFormat format, const Size& size,
                                     int count) {
  std::mt19937_64 random(1);
  std::vector<PooledImage> frames;
  for (int i = 0; i < count; ++i) {
    frames.push_back(allocate_image(pool, format, size.width, size.height));
    AVBufferRef& buffer = *frames.back().buffer.get();
    for (std::size_t at = 0; at + 8 <= buffer.size; at += 8) {
      const std::uint64_t value = random();
      std::memcpy(buffer.data + at, &value, sizeof value);
    }
  }
  return frames;
}

std::string formats_of(const Conversion& conversion) {
  std::string text =
      fmt::format("{} to {}", info(conversion.source).name, info(conversion.target).name);
  if (info(conversion.source).rgb) return text;
  const ColorSpec& from = conversion.source_color;
  const ColorSpec& to = conversion.target_color;
  if (from.matrix != to.matrix) {
    text += fmt::format(", {} to {}", to_string(from.matrix), to_string(to.matrix));
  }
  if (from.range != to.range) {
    text += fmt::format(", {} to {}", to_string(from.range), to_string(to.range));
  }
  return text;
}

std::string formats_of(std::span<const Conversion> conversions) {
  if (conversions.size() == 1 && !conversions.front().scaling) {
    return formats_of(conversions.front());
  }
  std::string text;
  std::string last;
  for (const Conversion& conversion : conversions) {
    const std::string formats = formats_of(conversion);
    const auto [width, height] = conversion.target_size();
    if (formats != last) {
      text += fmt::format("{}{} at {}x{}", text.empty() ? "" : " + ", formats, width, height);
    } else {
      text += fmt::format(" + {}x{}", width, height);
    }
    last = formats;
  }
  return text;
}

PlainImage::PlainImage(PixelFormat format, int width, int height)
    : image{format, width, height, {}} {
  constexpr std::size_t kStep = FramePool::kPitchAlignment;
  std::size_t bytes = 0;
  std::size_t offsets[kMaxPlanes]{};
  for (int plane = 0; plane < info(format).plane_count; ++plane) {
    const std::size_t pitch = (plane_row_bytes(format, plane, width) + kStep - 1) / kStep * kStep;
    offsets[plane] = bytes;
    image.planes[plane].pitch = static_cast<std::ptrdiff_t>(pitch);
    bytes += pitch * static_cast<std::size_t>(plane_rows(format, plane, height));
  }
  memory_.resize(bytes);
  for (int plane = 0; plane < info(format).plane_count; ++plane) {
    image.planes[plane].data = memory_.data() + offsets[plane];
  }
}

LumaHistogram luma_of(const ConstImageView& image) {
  LumaHistogram luma;
  count_luma(image, 0, image.height, luma);
  return luma;
}

PlainImage reference_result(const Conversion& conversion, const ConstImageView& source) {
  const auto [width, all_rows] = conversion.target_size();
  PlainImage result(conversion.target, width, all_rows);
  const auto reference = make_reference_converter(conversion);
  const int rows = (all_rows / processors() + 2) / 2 * 2;
  std::vector<std::jthread> threads;
  for (int y = 0; y < all_rows; y += rows) {
    const int end = std::min(y + rows, all_rows);
    threads.emplace_back([&, y, end] { reference->run(source, result.image, y, end); });
  }
  threads.clear();
  return result;
}

std::string first_difference(const ConstImageView& expected, const ConstImageView& got) {
  std::string found;
  for_each_row(expected.format, expected.width, expected.height,
               [&](int plane, int y, std::size_t bytes) {
                 if (!found.empty()) return;
                 found = first_difference(expected.row(plane, y), got.row(plane, y), bytes);
                 if (found.empty()) return;
                 found = fmt::format("row {}, {}", y, found);
                 if (info(expected.format).plane_count > 1) {
                   found = fmt::format("plane {}, {}", plane, found);
                 }
               });
  return found;
}

void spoil(const ImageView& image) {
  for_each_row(image.format, image.width, image.height, [&](int plane, int y, std::size_t bytes) {
    std::memset(image.row(plane, y), 0, bytes);
  });
}

Accuracy accuracy_of(const ConstImageView& exact, const ConstImageView& got) {
  std::size_t samples = 0;
  std::size_t off = 0;
  Accuracy result;
  for_each_row(exact.format, exact.width, exact.height, [&](int plane, int y, std::size_t bytes) {
    const std::uint8_t* const right = exact.row(plane, y);
    const std::uint8_t* const other = got.row(plane, y);
    samples += bytes;
    for (std::size_t x = 0; x < bytes; ++x) {
      off += right[x] != other[x];
      result.most_off = std::max(result.most_off, std::abs(right[x] - other[x]));
    }
  });
  result.share_off = static_cast<double>(off) / static_cast<double>(samples);
  return result;
}

Accuracy best_accuracy_of(Conversion conversion, const ConstImageView& source,
                          const ConstImageView& got) {
  Accuracy best{2, 0};
  for (const Siting siting : {Siting::kLeft, Siting::kCenter, Siting::kTopLeft}) {
    conversion.source_color.siting = conversion.target_color.siting = siting;
    const PlainImage exact = reference_result(conversion, source);
    const Accuracy accuracy = accuracy_of(as_const(exact.image), got);
    if (accuracy.share_off < best.share_off) best = accuracy;
  }
  return best;
}

}  // namespace framelane::bench
