#include "kernels/rgb_to_yuv.hpp"

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
#include "kernels/rgb_to_yuv_tile.hpp"

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
  PaddedTile(const SourceRows& source, int pixel_bytes, ChromaGrid grid, int count)
      : count_(count),
        chroma_(grid == ChromaGrid::k444 ? count : (count + 1) / 2),
        source_{pad(source.above, pixel_bytes, 0), pad(source.upper, pixel_bytes, 1),
                pad(source.lower, pixel_bytes, 2)} {}

  const SourceRows& source() const { return source_; }
  TargetRows target(const TargetRows& real) {
    return {luma_[0].data(), real.lower == nullptr ? nullptr : luma_[1].data(), u_.data(),
            real.v == nullptr ? nullptr : v_.data(), false};
  }
  void copy_to(const TargetRows& real) const {
    const auto pixels = static_cast<std::size_t>(count_);
    const auto chroma = static_cast<std::size_t>(chroma_);
    std::memcpy(real.upper, luma_[0].data(), pixels);
    if (real.lower != nullptr) std::memcpy(real.lower, luma_[1].data(), pixels);
    std::memcpy(real.u, u_.data(), real.v == nullptr ? 2 * chroma : chroma);
    if (real.v != nullptr) std::memcpy(real.v, v_.data(), chroma);
  }

 private:
  const std::uint8_t* pad(const std::uint8_t* pixels, int pixel_bytes, std::size_t row) {
    std::uint8_t* const padded = rgb_[row].data();
    const auto bytes = static_cast<std::size_t>(pixel_bytes);
    for (int i = 0; i < kGroup; ++i) {
      std::memcpy(padded + i * kBytesPerPixel, pixels + std::min(i, count_ - 1) * pixel_bytes,
                  bytes);
    }
    return padded;
  }

  int count_;
  int chroma_;
  std::array<std::array<std::uint8_t, kGroup * kBytesPerPixel>, 3> rgb_{};
  std::array<std::array<std::uint8_t, kGroup>, 2> luma_;
  std::array<std::uint8_t, kGroup> u_;
  std::array<std::uint8_t, kGroup> v_;
  SourceRows source_;
};

// A tile of 24-bit pixels, with a fourth byte in each.
struct WideTile {
  alignas(64) std::array<std::array<std::uint8_t, kTile * kBytesPerPixel>, 3> rows;
};

SourceRows at_column(const SourceRows& rows, int pixel_bytes, int x) {
  const int offset = x * pixel_bytes;
  return {rows.above + offset, rows.upper + offset, rows.lower + offset};
}

TargetRows at_column(const TargetRows& rows, ChromaGrid grid, int x) {
  const bool planar = rows.v != nullptr;
  const int chroma = planar && grid != ChromaGrid::k444 ? x / 2 : x;
  return {rows.upper + x, rows.lower == nullptr ? nullptr : rows.lower + x, rows.u + chroma,
          planar ? rows.v + chroma : nullptr, rows.streaming};
}

int pixel_bytes_of(PixelFormat format) { return info(format).planes[0].bytes_per_sample; }

ChromaGrid grid_of(PixelFormat format) {
  const PixelFormatInfo& target = info(format);
  if (!target.chroma_half_width) return ChromaGrid::k444;
  return target.chroma_half_height ? ChromaGrid::k420 : ChromaGrid::k422;
}

RgbToYuvPlan make_plan(const Conversion& conversion) {
  static constexpr std::uint8_t kPixel[kBytesPerPixel] = {};
  const auto channel = channels(ConstImageView{conversion.source, 1, 1, {{{kPixel, 0}}}});
  std::array<std::size_t, 3> place;
  for (std::size_t k = 0; k < 3; ++k) {
    place[k] = static_cast<std::size_t>(channel[k].data - kPixel);
  }
  RgbToYuvPlan plan;
  plan.grid = grid_of(conversion.target);
  plan.siting = conversion.target_color.siting;
  const PixelFormatInfo& target = info(conversion.target);
  const int across = !target.chroma_half_width ? 1 : cosited_across(plan.siting) ? 4 : 2;
  const int down = !target.chroma_half_height ? 1 : cosited_down(plan.siting) ? 4 : 2;
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

class RgbToYuvConverter final : public Converter {
 public:
  RgbToYuvConverter(const RgbToYuvPlan& plan, int pixel_bytes, Stores stores,
                    TileFunction convert_tile)
      : convert_tile_(convert_tile),
        widen_(best_widen_function()),
        pixel_bytes_(pixel_bytes),
        streaming_(stores == Stores::kStreaming),
        plan_(plan) {}

  void run(const ConstImageView& source, const ImageView& target, int row_begin,
           int row_end) const override {
    const bool half_height = plan_.grid == ChromaGrid::k420;
    const bool streaming = streaming_ && is_aligned(target);
    const int rest = source.width % kGroup;
    const int whole = source.width - rest;
    ColumnSums columns;
    WideTile wide;
    for (int y = row_begin; y < row_end; y += half_height ? 2 : 1) {
      const bool pair = half_height && y + 1 < source.height;
      const int row = half_height ? y / 2 : y;
      const SourceRows from{source.row(0, std::max(y - 1, 0)), source.row(0, y),
                            source.row(0, std::min(y + 1, source.height - 1))};
      const TargetRows to{
          target.row(0, y), pair ? target.row(0, y + 1) : nullptr, target.row(1, row),
          target.format == PixelFormat::kNv12 ? nullptr : target.row(2, row), streaming};
      for (int x = 0; x < whole; x += kTile) {
        const int count = std::min(kTile, whole - x);
        const SourceRows tile = at_column(from, pixel_bytes_, x);
        convert_tile_(plan_, pixel_bytes_ == kBytesPerPixel ? tile : widen(tile, count, wide),
                      at_column(to, plan_.grid, x), count, x == 0, columns);
      }
      if (rest <= 0) continue;
      PaddedTile tail(at_column(from, pixel_bytes_, whole), pixel_bytes_, plan_.grid, rest);
      const TargetRows end = at_column(to, plan_.grid, whole);
      convert_tile_(plan_, tail.source(), tail.target(end), kGroup, whole == 0, columns);
      tail.copy_to(end);
    }
    // Stores that bypass the caches become visible to other threads in order only after this.
    if (streaming) hwy::FlushStream();
  }

  const char* name() const override { return "rgb-to-yuv"; }

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

  SourceRows widen(const SourceRows& rows, int count, WideTile& wide) const {
    const std::ptrdiff_t ahead = 2 * (rows.lower - rows.upper);
    const auto row = [&](const std::uint8_t* from, std::size_t i) {
      widen_(from, ahead, wide.rows[i].data(), count);
      return wide.rows[i].data();
    };
    const bool above = plan_.grid == ChromaGrid::k420 && plan_.siting == Siting::kTopLeft;
    const std::uint8_t* const upper = row(rows.upper, 1);
    return {above ? row(rows.above, 0) : upper, upper,
            plan_.grid == ChromaGrid::k420 ? row(rows.lower, 2) : upper};
  }

  TileFunction convert_tile_;
  WidenFunction widen_;
  int pixel_bytes_;
  bool streaming_;
  RgbToYuvPlan plan_;
};

}  // namespace

bool is_rgb_to_yuv(const Conversion& conversion) {
  switch (conversion.target) {
    case PixelFormat::kI420:
    case PixelFormat::kNv12:
    case PixelFormat::kI422:
    case PixelFormat::kI444:
      return info(conversion.source).rgb && conversion.source_color.range == Range::kFull;
    default:
      return false;
  }
}

std::unique_ptr<const Converter> make_rgb_to_yuv_converter(const Conversion& conversion,
                                                           Stores stores) {
  assert(is_rgb_to_yuv(conversion) && !why_unsupported(conversion));
  const RgbToYuvPlan plan = make_plan(conversion);
  const TileFunction convert_tile = best_tile_function(plan);
  if (convert_tile == nullptr) return nullptr;
  return std::make_unique<RgbToYuvConverter>(plan, pixel_bytes_of(conversion.source), stores,
                                             convert_tile);
}

}  // namespace framelane
