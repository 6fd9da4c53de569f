#include "kernels/rgb_to_yuv420.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <hwy/cache_control.h>

#include "kernels/channel.hpp"
#include "kernels/chroma_taps.hpp"
#include "kernels/linear_transform.hpp"
#include "kernels/rgb_to_yuv420_tile.hpp"

namespace framelane {

PixelForm::PixelForm(const LinearForm& form, int scale, const std::array<std::size_t, 3>& place)
    : exact(exact_quotient(form, scale)) {
  const FixedForm fixed = fixed_form(form, {scale, scale, scale});
  assert(fixed.inputs == 3);
  // The offset is rounded to a multiple of kUnit. The window has room for that error.
  constexpr std::int32_t kUnit = 1 << kLowBits;
  assert(fixed.window >= 3 * 255 * scale + 1 + kUnit);
  offset_high = (fixed.offset + kUnit / 2) >> kLowBits;
  fraction_bits = fixed.fraction_bits;
  greatest = fixed.greatest();
  fraction_above_window = fixed.fraction_above_window();
  for (std::size_t k = 0; k < 3; ++k) {
    // Rounded, so that the low part fits in a signed 16-bit number.
    const std::int32_t high = (fixed.coefficients[k] + (1 << (kLowBits - 1))) >> kLowBits;
    const std::int32_t low = fixed.coefficients[k] - high * (1 << kLowBits);
    assert(high == static_cast<std::int16_t>(high) && low == static_cast<std::int16_t>(low));
    Pairs& pairs = place[k] % 2 == 0 ? even : odd;
    const std::size_t shift = place[k] / 2 * 16;
    pairs.high |= std::uint32_t{static_cast<std::uint16_t>(high)} << shift;
    pairs.low |= std::uint32_t{static_cast<std::uint16_t>(low)} << shift;
    exact_coefficients[place[k]] = exact.coefficients[k];
  }
}

namespace {

// The last pixels of a row, padded to a group by repeating the last one, and their results.
class PaddedTile {
 public:
  PaddedTile(const SourceRows& source, int count)
      : count_(count), source_{pad(source.above, 0), pad(source.upper, 1), pad(source.lower, 2)} {}

  const SourceRows& source() const { return source_; }
  TargetRows target(const TargetRows& real) {
    return {luma_[0].data(), real.lower == nullptr ? nullptr : luma_[1].data(), u_.data(),
            real.v == nullptr ? nullptr : v_.data(), false};
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
          rows.u + (planar ? x / 2 : x), planar ? rows.v + x / 2 : nullptr, rows.streaming};
}

RgbToYuv420Plan make_plan(const Conversion& conversion) {
  static constexpr std::uint8_t kPixel[kBytesPerPixel] = {};
  const auto channel = channels(ConstImageView{conversion.source, 1, 1, {{{kPixel, 0}}}});
  std::array<std::size_t, 3> place;
  for (std::size_t k = 0; k < 3; ++k) {
    place[k] = static_cast<std::size_t>(channel[k].data - kPixel);
  }
  RgbToYuv420Plan plan;
  plan.siting = conversion.target_color.siting;
  const int across = cosited_across(plan.siting) ? 4 : 2;
  const int down = cosited_down(plan.siting) ? 4 : 2;
  const auto forms = color_transform(conversion.source_color, conversion.target_color);
  plan.luma = PixelForm(forms[0], 1, place);
  plan.u = PixelForm(forms[1], across * down, place);
  plan.v = PixelForm(forms[2], across * down, place);
  plan.fraction_bits = plan.luma.fraction_bits;
  assert(plan.fraction_bits == 22 || plan.fraction_bits == 23);
  assert(plan.u.fraction_bits == plan.fraction_bits && plan.v.fraction_bits == plan.fraction_bits);
  assert(plan.u.fraction_above_window == plan.v.fraction_above_window);
  return plan;
}

class RgbToYuv420Converter final : public Converter {
 public:
  RgbToYuv420Converter(const RgbToYuv420Plan& plan, Stores stores, TileFunction convert_tile)
      : convert_tile_(convert_tile), streaming_(stores == Stores::kStreaming), plan_(plan) {}

  void run(const ConstImageView& source, const ImageView& target, int row_begin,
           int row_end) const override {
    const bool planar = target.format == PixelFormat::kI420;
    const bool streaming = streaming_ && is_aligned(target);
    const int width = source.width;
    const int rest = width % kGroup;
    const int whole = width - rest;
    ColumnSums columns;
    for (int y = row_begin; y < row_end; y += 2) {
      const bool pair = y + 1 < source.height;
      const SourceRows from{source.row(0, std::max(y - 1, 0)), source.row(0, y),
                            source.row(0, pair ? y + 1 : y)};
      const TargetRows to{target.row(0, y), pair ? target.row(0, y + 1) : nullptr,
                          target.row(1, y / 2), planar ? target.row(2, y / 2) : nullptr, streaming};
      for (int x = 0; x < whole; x += kTile) {
        convert_tile_(plan_, at_column(from, x), at_column(to, x), std::min(kTile, whole - x),
                      x == 0, columns);
      }
      if (rest <= 0) continue;
      PaddedTile tail(at_column(from, whole), rest);
      const TargetRows end = at_column(to, whole);
      convert_tile_(plan_, tail.source(), tail.target(end), kGroup, whole == 0, columns);
      tail.copy_to(end);
    }
    // Stores that bypass the caches become visible to other threads in order only after this.
    if (streaming) hwy::FlushStream();
  }

  const char* name() const override { return "rgb-to-yuv420"; }

 private:
  // True if every vector of a row's whole groups may be stored with streaming stores.
  static bool is_aligned(const ImageView& target) {
    constexpr std::uintptr_t kAlignment = 64;
    std::uintptr_t bits = 0;
    for (int plane = 0; plane < info(target.format).plane_count; ++plane) {
      bits |= reinterpret_cast<std::uintptr_t>(target.planes[plane].data);
      bits |= static_cast<std::uintptr_t>(target.planes[plane].pitch);
    }
    return bits % kAlignment == 0;
  }

  TileFunction convert_tile_;
  bool streaming_;
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

std::unique_ptr<const Converter> make_rgb_to_yuv420_converter(const Conversion& conversion,
                                                              Stores stores) {
  assert(is_rgb_to_yuv420(conversion) && !why_unsupported(conversion));
  const RgbToYuv420Plan plan = make_plan(conversion);
  const TileFunction convert_tile = best_tile_function(plan);
  if (convert_tile == nullptr) return nullptr;
  return std::make_unique<RgbToYuv420Converter>(plan, stores, convert_tile);
}

}  // namespace framelane
