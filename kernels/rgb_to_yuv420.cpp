#include "kernels/rgb_to_yuv420.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "kernels/chroma_taps.hpp"
#include "kernels/linear_transform.hpp"
#include "kernels/rgb_to_yuv420_tile.hpp"

namespace framelane {
namespace {

// A row's last pixels, padded by repeating the very last one, and the results for them.
class PaddedTile {
 public:
  PaddedTile(const SourceRows& source, int count)
      : count_(count), source_{pad(source.above, 0), pad(source.upper, 1), pad(source.lower, 2)} {}

  const SourceRows& source() const { return source_; }
  TargetRows target(const TargetRows& real) {
    return {luma_[0].data(), real.lower == nullptr ? nullptr : luma_[1].data(), u_.data(),
            real.v == nullptr ? nullptr : v_.data()};
  }
  void copy_to(const TargetRows& real) const {
    const auto pixels = static_cast<std::size_t>(count_);
    const std::size_t chroma = (pixels + 1) / 2;
    std::memcpy(real.upper, luma_[0].data(), pixels);
    if (real.lower != nullptr) std::memcpy(real.lower, luma_[1].data(), pixels);
    std::memcpy(real.u, u_.data(), real.v == nullptr ? 2 * chroma : chroma);
    if (real.v != nullptr) std::memcpy(real.v, v_.data(), chroma);
  }

 private:
  const std::uint8_t* pad(const std::uint8_t* pixels, std::size_t row) {
    std::uint8_t* padded = rgb_[row].data();
    const std::size_t used = static_cast<std::size_t>(count_) * kBytesPerPixel;
    std::memcpy(padded, pixels, used);
    for (std::size_t i = used; i < rgb_[row].size(); i += kBytesPerPixel) {
      std::memcpy(padded + i, padded + used - kBytesPerPixel, kBytesPerPixel);
    }
    return padded;
  }

  int count_;
  std::array<std::array<std::uint8_t, kGroup * kBytesPerPixel>, 3> rgb_;
  std::array<std::array<std::uint8_t, kGroup>, 2> luma_;
  std::array<std::uint8_t, kGroup> u_;
  std::array<std::uint8_t, kGroup / 2> v_;
  SourceRows source_;
};

SourceRows at_column(const SourceRows& rows, int x) {
  const int offset = x * kBytesPerPixel;
  return {rows.above + offset, rows.upper + offset, rows.lower + offset};
}

TargetRows at_column(const TargetRows& rows, int x) {
  const bool planar = rows.v != nullptr;
  return {rows.upper + x, rows.lower == nullptr ? nullptr : rows.lower + x,
          rows.u + (planar ? x / 2 : x), planar ? rows.v + x / 2 : nullptr};
}

class RgbToYuv420Converter final : public Converter {
 public:
  explicit RgbToYuv420Converter(const Conversion& conversion) {
    // Red's and blue's places among the three colour bytes.
    const bool blue_first =
        conversion.source == PixelFormat::kBgra || conversion.source == PixelFormat::kAbgr;
    plan_.alpha_first =
        conversion.source == PixelFormat::kArgb || conversion.source == PixelFormat::kAbgr;
    plan_.siting = conversion.target_color.siting;
    const int across = cosited_across(plan_.siting) ? 4 : 2;
    const int down = cosited_down(plan_.siting) ? 4 : 2;
    const auto forms = color_transform(conversion.source_color, conversion.target_color);
    plan_.luma = exact_quotient(forms[0], 1);
    plan_.u = exact_quotient(forms[1], across * down);
    plan_.v = exact_quotient(forms[2], across * down);
    if (blue_first) {
      for (ExactQuotient* q : {&plan_.luma, &plan_.u, &plan_.v}) {
        std::swap(q->coefficients[0], q->coefficients[2]);
      }
    }
  }

  void run(const ConstImageView& source, const ImageView& target, int row_begin,
           int row_end) const override {
    const auto convert_tile = best_tile_function();
    const bool planar = target.format == PixelFormat::kI420;
    const int width = source.width;
    const int whole = width - width % kGroup;
    ColumnSums columns;
    for (int y = row_begin; y < row_end; y += 2) {
      const bool pair = y + 1 < source.height;
      const SourceRows from{source.row(0, std::max(y - 1, 0)), source.row(0, y),
                            source.row(0, pair ? y + 1 : y)};
      const TargetRows to{target.row(0, y), pair ? target.row(0, y + 1) : nullptr,
                          target.row(1, y / 2), planar ? target.row(2, y / 2) : nullptr};
      for (int x = 0; x < whole; x += kTile) {
        convert_tile(plan_, at_column(from, x), at_column(to, x), std::min(kTile, whole - x),
                     x == 0, columns);
      }
      if (whole == width) continue;
      PaddedTile tail(at_column(from, whole), width - whole);
      const TargetRows rest = at_column(to, whole);
      convert_tile(plan_, tail.source(), tail.target(rest), kGroup, whole == 0, columns);
      tail.copy_to(rest);
    }
  }

  const char* name() const override { return "rgb-to-yuv420"; }

 private:
  RgbToYuv420Plan plan_;
};

}  // namespace

bool is_rgb_to_yuv420(const Conversion& conversion) {
  const bool from =
      conversion.source == PixelFormat::kBgra || conversion.source == PixelFormat::kRgba ||
      conversion.source == PixelFormat::kArgb || conversion.source == PixelFormat::kAbgr;
  const bool to =
      conversion.target == PixelFormat::kI420 || conversion.target == PixelFormat::kNv12;
  return from && to && conversion.source_color.range == Range::kFull;
}

std::unique_ptr<const Converter> make_rgb_to_yuv420_converter(const Conversion& conversion) {
  assert(is_rgb_to_yuv420(conversion) && !why_unsupported(conversion));
  return std::make_unique<RgbToYuv420Converter>(conversion);
}

}  // namespace framelane
