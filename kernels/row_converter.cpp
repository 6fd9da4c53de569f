#include "kernels/row_converter.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/channel.hpp"
#include "kernels/chroma_taps.hpp"
#include "kernels/fixed_form.hpp"
#include "kernels/linear_transform.hpp"
#include "kernels/row_kernels.hpp"

namespace framelane {
namespace {

// Pixels of a row that are converted at once: even, and few enough for the first-level cache.
constexpr int kTile = 512;
constexpr int kPad = 32;  // room before a line of sums, for its left neighbour; keeps it aligned

// How chroma is filtered along one axis: `weight` applies to the samples at stride * i - 1, stride
// * i and stride * i + 1 of the source's grid. Beyond an edge the last sample is repeated; but if
// `mirrored`, the last but one comes behind the far edge.
struct AxisFilter {
  int stride = 1;
  std::array<int, 3> weight{0, 1, 0};
  int scale = 1;
  bool mirrored = false;

  bool identity() const { return scale == 1; }
};

AxisFilter axis_filter(bool from_half, bool to_half, bool via_sites, bool cosited, int pixels) {
  if (!to_half || (from_half && !via_sites)) return {};
  if (!from_half) {
    return cosited ? AxisFilter{2, {1, 2, 1}, 4, false} : AxisFilter{2, {0, 1, 1}, 2, false};
  }
  // Chroma is interpolated to luma sites and filtered back. Together that is [1 6 1] in both
  // sitings. If sites lie between chroma samples and their number is odd, the last chroma sample
  // has only the site before it, which therefore counts twice: (2 * 3 + 2 * 1) / 8.
  return {1, {1, 6, 1}, 8, !cosited && pixels % 2 != 0};
}

// A channel's samples of one row: data[0] is column `first`.
struct SourceLine {
  const std::uint8_t* data = nullptr;
  int first = 0;

  const std::uint8_t* at(int column) const { return data + (column - first); }
};
using SourceRow = std::array<SourceLine, 3>;

constexpr std::size_t kLineSize = kPad + kTile + 2 * kLineSlack;
using SumLine = std::array<std::uint16_t, kLineSize>;
template <typename T, std::size_t kCount>
using Lines = std::array<std::array<T, kLineSize>, kCount>;

// The buffers for one tile. They are on the stack, so that any number of threads may run.
struct Scratch {
  alignas(64) std::array<Lines<std::uint8_t, 4>, 3> apart;  // above, here, below
  alignas(64) std::array<SumLine, 3> down;
  alignas(64) std::array<SumLine, 3> across;
  alignas(64) Lines<std::uint8_t, 3> codes;
};

// Columns of one channel's grid: `begin` and `count` of the tile itself, and the context, which has
// a neighbour more on each side, unless the picture ends there.
struct Span {
  int begin, count;
  int context_begin, context_end;

  Span(int from, int samples, int width)
      : begin(from),
        count(samples),
        context_begin(std::max(from - 1, 0)),
        context_end(std::min(from + samples + 1, width)) {}
  std::size_t size() const { return static_cast<std::size_t>(count); }
  std::size_t context_size() const { return static_cast<std::size_t>(context_end - context_begin); }
};

struct Tile {
  Span pixels;
  Span half;  // the same columns in a channel of half width

  Tile(int x, int count, int width)
      : pixels(x, count, width), half(x / 2, (count + 1) / 2, (width + 1) / 2) {}
};

class RowConverter final : public Converter {
 public:
  RowConverter(const Conversion& conversion, const RowKernels& kernels)
      : kernels_(kernels),
        conversion_(conversion),
        from_(info(conversion.source)),
        to_(info(conversion.target)),
        cosited_across_(cosited_across(conversion.source_color.siting)),
        cosited_down_(cosited_down(conversion.source_color.siting)),
        at_sites_(!from_.rgb && mixes_channels(conversion)) {
    const auto forms = color_transform(conversion);
    const int site_scale = (from_.chroma_half_width ? interpolation_scale(cosited_across_) : 1) *
                           (from_.chroma_half_height ? interpolation_scale(cosited_down_) : 1);
    copies_luma_ = is_copy(forms[0], 0);
    luma_ = fixed_form(forms[0], {1, site_scale, site_scale});
    if (to_.gray || from_.gray) return;

    const Siting siting = conversion.target_color.siting;
    across_ = axis_filter(from_.chroma_half_width, to_.chroma_half_width, at_sites_,
                          cosited_across(siting), conversion.width);
    down_ = axis_filter(from_.chroma_half_height, to_.chroma_half_height, at_sites_,
                        cosited_down(siting), conversion.height);
    const int scale = across_.scale * down_.scale;
    for (std::size_t i = 0; i < 2; ++i) {
      chroma_[i] = fixed_form(forms[i + 1], {scale, scale, scale});
      copies_chroma_[i] = scale == 1 && is_copy(forms[i + 1], i + 1);
    }
  }

  void run(const ConstImageView& source, const ImageView& target, int row_begin,
           int row_end) const override {
    Scratch scratch;
    const int step = to_.chroma_half_height ? 2 : 1;
    for (int y = row_begin; y < row_end; y += step) {
      for (int x = 0; x < conversion_.width; x += kTile) {
        const Tile tile(x, std::min(kTile, conversion_.width - x), conversion_.width);
        convert_tile(source, target, tile, y, std::min(step, conversion_.height - y), scratch);
      }
    }
  }

  const char* name() const override { return "rows"; }

 private:
  using SourceRows = std::array<SourceRow, 3>;  // above, here, below
  using InputLines = std::array<Line, 3>;       // one for each channel

  static int interpolation_scale(bool cosited) { return cosited ? 2 : 4; }

  void convert_tile(const ConstImageView& source, const ImageView& target, const Tile& tile, int y,
                    int rows, Scratch& scratch) const {
    const SourceRows context = read_rows(source, tile, y, scratch);
    const std::uint8_t* luma = nullptr;
    for (int i = 0; i < rows; ++i) {
      const bool apart = target.format != PixelFormat::kYuv444;
      std::uint8_t* place = apart ? target.row(0, y + i) + tile.pixels.begin : nullptr;
      luma = convert_luma(source, tile, y, i, context, place, scratch);
    }
    if (to_.gray) return;

    const int row = to_.chroma_half_height ? y / 2 : y;
    const Span& span = to_.chroma_half_width ? tile.half : tile.pixels;
    const InputLines lines = from_.gray ? InputLines{} : filter_chroma(context, tile, scratch);
    std::array<const std::uint8_t*, 2> chroma{};
    for (std::size_t i = 0; i < 2; ++i) {
      std::uint8_t* place =
          to_.plane_count == 3 ? target.row(static_cast<int>(i) + 1, row) + span.begin : nullptr;
      chroma[i] = convert_chroma(i, lines, span.size(), place, scratch);
    }
    if (target.format == PixelFormat::kNv12) {
      kernels_.merge2(chroma[0], chroma[1], target.row(1, row) + 2 * span.begin, span.size());
    } else if (target.format == PixelFormat::kYuv444) {
      kernels_.merge3(luma, chroma[0], chroma[1], target.row(0, y) + 3 * span.begin, span.size());
    }
  }

  // The row of the source's chroma grid at luma row `y`, and its neighbours if they are needed.
  SourceRows read_rows(const ConstImageView& source, const Tile& tile, int y,
                       Scratch& scratch) const {
    SourceRows rows;
    if (from_.gray) return rows;
    const bool half = from_.chroma_half_height;
    const int here = half ? y / 2 : y;
    const int last = (half ? (conversion_.height + 1) / 2 : conversion_.height) - 1;
    rows[1] = read_row(source, tile, here, scratch.apart[1]);
    rows[0] = rows[2] = rows[1];
    if (here > 0 && (down_.weight[0] != 0 || (at_sites_ && half && !cosited_down_))) {
      rows[0] = read_row(source, tile, here - 1, scratch.apart[0]);
    }
    if (here < last && (down_.weight[2] != 0 || (at_sites_ && half))) {
      rows[2] = read_row(source, tile, here + 1, scratch.apart[2]);
    } else if (down_.mirrored) {
      rows[2] = rows[0];
    }
    return rows;
  }

  // One row of the chroma grid, with interleaved channels separated. The luma is missing if it has
  // another number of rows.
  SourceRow read_row(const ConstImageView& source, const Tile& tile, int row,
                     Lines<std::uint8_t, 4>& apart) const {
    const Span& half = tile.half;
    const Span& pixels = tile.pixels;
    const auto line = [&apart](std::size_t i) { return apart[i].data(); };
    switch (source.format) {
      case PixelFormat::kNv12:
        kernels_.split2(source.row(1, row) + 2 * half.context_begin, line(0), line(1),
                        half.context_size());
        return {{{}, {line(0), half.context_begin}, {line(1), half.context_begin}}};
      case PixelFormat::kYuyv:
      case PixelFormat::kUyvy: {
        const std::size_t luma = source.format == PixelFormat::kYuyv ? 0 : 1;
        kernels_.split2(source.row(0, row) + 4 * half.context_begin, line(0), line(1),
                        2 * half.context_size());
        kernels_.split2(line(1 - luma), line(2), line(3), half.context_size());
        return {{{line(luma), 2 * half.context_begin},
                 {line(2), half.context_begin},
                 {line(3), half.context_begin}}};
      }
      case PixelFormat::kI420:
      case PixelFormat::kI422:
      case PixelFormat::kI444: {
        const int chroma = (from_.chroma_half_width ? half : pixels).context_begin;
        const bool luma = !from_.chroma_half_height;
        return {{{luma ? source.row(0, row) + pixels.context_begin : nullptr, pixels.context_begin},
                 {source.row(1, row) + chroma, chroma},
                 {source.row(2, row) + chroma, chroma}}};
      }
      default: {
        const auto channel = channels(source);
        const std::uint8_t* packed = source.row(0, row) + channel[0].step * pixels.context_begin;
        if (channel[0].step == 3) {
          kernels_.split3(packed, line(0), line(1), line(2), pixels.context_size());
        } else {
          kernels_.split4(packed, line(0), line(1), line(2), line(3), pixels.context_size());
        }
        SourceRow result;
        for (std::size_t k = 0; k < 3; ++k) {
          const std::ptrdiff_t place = channel[k].data - source.planes[0].data;
          result[k] = {line(static_cast<std::size_t>(place)), pixels.context_begin};
        }
        return result;
      }
    }
  }

  // Converts the luma of row y + i, in a tile that begins at row y. Writes it to `place` and
  // returns that; if `place` is null, returns where the result is.
  const std::uint8_t* convert_luma(const ConstImageView& source, const Tile& tile, int y, int i,
                                   const SourceRows& context, std::uint8_t* place,
                                   Scratch& scratch) const {
    const Span& pixels = tile.pixels;
    const SourceRow& row = context[static_cast<std::size_t>(from_.chroma_half_height ? 1 : 1 + i)];
    const bool own_plane =
        from_.gray || source.format == PixelFormat::kNv12 || from_.plane_count == 3;
    const std::uint8_t* luma =
        own_plane ? source.row(0, y + i) + pixels.begin : row[0].at(pixels.begin);
    if (copies_luma_) return copy(luma, place, pixels.size());

    InputLines lines{Line{luma}};
    if (luma_.inputs > 1) {
      for (const std::size_t k : {1, 2}) {
        lines[k] = from_.chroma_half_width ? chroma_at_sites(k, tile, y + i, row, context, scratch)
                                           : Line{row[k].at(pixels.begin)};
      }
    }
    if (place == nullptr) place = scratch.codes[0].data();
    kernels_.evaluate(luma_, inputs(luma_, lines), place, pixels.size());
    return place;
  }

  // A subsampled channel, interpolated to every pixel of luma row `y`.
  Line chroma_at_sites(std::size_t k, const Tile& tile, int y, const SourceRow& own,
                       const SourceRows& context, Scratch& scratch) const {
    WeightedRows rows{1, {own[k].at(tile.half.context_begin)}, {1}};
    if (from_.chroma_half_height) {
      const int chroma_height = (conversion_.height + 1) / 2;
      const Taps taps = interpolating_taps(y, chroma_height, cosited_down_);
      rows.count = taps.count;
      for (std::size_t j = 0; j < taps.count; ++j) {
        const auto at = static_cast<std::size_t>(taps.index[j] - (y / 2 - 1));
        rows.row[j] = context[at][k].at(tile.half.context_begin);
        rows.weight[j] = taps.weight[j] * interpolation_scale(cosited_down_) / Taps::kScale;
      }
    }
    const std::uint16_t* sums = sum_rows(rows, tile.half, scratch.down[k]);
    std::uint16_t* sites = scratch.across[k].data();
    if (cosited_across_) {
      kernels_.interpolate(sums, {0, 2}, {1, 1}, sites, tile.half.size());
    } else {
      kernels_.interpolate(sums, {1, 3}, {3, 1}, sites, tile.half.size());
    }
    return Line{nullptr, sites};
  }

  // The weighted sum of rows that begin at the span's context. Adds the samples beyond the
  // picture's edges that filters read.
  const std::uint16_t* sum_rows(const WeightedRows& rows, const Span& span, SumLine& line) const {
    std::uint16_t* sums = line.data() + kPad;
    kernels_.filter_down(rows, sums - (span.begin - span.context_begin), span.context_size());
    if (span.context_begin == span.begin) sums[-1] = sums[0];
    if (span.context_end == span.begin + span.count) {
      sums[span.count] = sums[across_.mirrored ? span.count - 2 : span.count - 1];
    }
    return sums;
  }

  // The inputs of the chroma forms, on the target's chroma grid.
  InputLines filter_chroma(const SourceRows& context, const Tile& tile, Scratch& scratch) const {
    InputLines lines;
    const Span& from = from_.chroma_half_width ? tile.half : tile.pixels;
    const Span& to = to_.chroma_half_width ? tile.half : tile.pixels;
    for (std::size_t k = from_.rgb ? 0 : 1; k < 3; ++k) {
      if (across_.identity() && down_.identity()) {
        lines[k].samples = context[1][k].at(from.begin);
        continue;
      }
      WeightedRows rows;
      for (std::size_t j = 0; j < 3; ++j) {
        if (down_.weight[j] == 0) continue;
        rows.row[rows.count] = context[j][k].at(from.context_begin);
        rows.weight[rows.count++] = down_.weight[j];
      }
      lines[k].sums = sum_rows(rows, from, scratch.down[k]);
      if (across_.identity()) continue;
      std::uint16_t* filtered = scratch.across[k].data();
      kernels_.filter_across(lines[k].sums, across_.stride, across_.weight, filtered, to.size());
      lines[k].sums = filtered;
    }
    return lines;
  }

  // As convert_luma, for U (i = 0) or V (i = 1).
  const std::uint8_t* convert_chroma(std::size_t i, const InputLines& lines, std::size_t count,
                                     std::uint8_t* place, Scratch& scratch) const {
    if (copies_chroma_[i]) return copy(lines[i + 1].samples, place, count);
    if (place == nullptr) place = scratch.codes[i + 1].data();
    if (from_.gray) {
      std::memset(place, kNeutralChroma, count);
    } else {
      kernels_.evaluate(chroma_[i], inputs(chroma_[i], lines), place, count);
    }
    return place;
  }

  static const std::uint8_t* copy(const std::uint8_t* samples, std::uint8_t* place,
                                  std::size_t count) {
    if (place == nullptr) return samples;
    std::memcpy(place, samples, count);
    return place;
  }

  static InputLines inputs(const FixedForm& form, const InputLines& lines) {
    InputLines result;
    for (std::size_t i = 0; i < form.inputs; ++i) result[i] = lines[form.input[i]];
    return result;
  }

  const RowKernels& kernels_;
  const Conversion conversion_;
  const PixelFormatInfo& from_;
  const PixelFormatInfo& to_;
  // The source's siting.
  const bool cosited_across_;
  const bool cosited_down_;
  // The matrix changes, so chroma is needed at every luma site.
  const bool at_sites_;
  FixedForm luma_;
  std::array<FixedForm, 2> chroma_;
  AxisFilter across_, down_;
  bool copies_luma_ = false;
  std::array<bool, 2> copies_chroma_{};
};

}  // namespace

std::unique_ptr<const Converter> make_row_converter(const Conversion& conversion) {
  assert(!why_unsupported(conversion));
  const RowKernels* kernels = best_row_kernels();
  if (kernels == nullptr) return nullptr;
  return std::make_unique<RowConverter>(conversion, *kernels);
}

}  // namespace framelane
