#include "kernels/remap.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "kernels/byte_map.hpp"
#include "kernels/channel.hpp"
#include "kernels/chroma_taps.hpp"
#include "kernels/fixed_form.hpp"
#include "kernels/linear_transform.hpp"
#include "kernels/remap_kernels.hpp"

namespace framelane {
namespace {

constexpr std::size_t kTile = 1024;  // chroma samples that are averaged before they are interleaved

bool is_packed(PixelFormat format) {
  return format == PixelFormat::kYuyv || format == PixelFormat::kUyvy;
}

/// How chroma is averaged.
struct Means {
  bool down = false;  ///< the source's rows are twice as many
  bool three_rows = false;
  Across across = Across::kOne;
  bool any() const { return down || across != Across::kOne; }
};

Means means_of(const Conversion& conversion) {
  const PixelFormatInfo& from = info(conversion.source);
  const PixelFormatInfo& to = info(conversion.target);
  if (to.gray || from.gray) return {};
  const Siting siting = conversion.target_color.siting;
  Means means;
  means.down = to.chroma_half_height && !from.chroma_half_height;
  means.three_rows = means.down && cosited_down(siting);
  if (to.chroma_half_width && !from.chroma_half_width) {
    means.across = cosited_across(siting) ? Across::kThree : Across::kTwo;
  }
  return means;
}

/// Sample `i` of the means, of lines whose last sample is `last` and is repeated beyond the edge.
std::uint8_t mean_at(const MeanRows& rows, Across across, int i, int last) {
  const auto sum = [&](int column) {
    const int c = std::clamp(column, 0, last);
    int result = rows.row[0][c];
    if (rows.count == 2) result += rows.row[1][c];
    if (rows.count == 3) result += 2 * rows.row[1][c] + rows.row[2][c];
    return result;
  };
  const int weight = rows.count == 3 ? 4 : static_cast<int>(rows.count);
  switch (across) {
    case Across::kOne:
      return static_cast<std::uint8_t>((2 * sum(i) + weight) / (2 * weight));
    case Across::kTwo:
      return static_cast<std::uint8_t>((sum(2 * i) + sum(2 * i + 1) + weight) / (2 * weight));
    default:
      return static_cast<std::uint8_t>(
          (sum(2 * i - 1) + 2 * sum(2 * i) + sum(2 * i + 1) + 2 * weight) / (4 * weight));
  }
}

class RemapConverter final : public Converter {
 public:
  RemapConverter(const Conversion& conversion, const RemapKernels& kernels,
                 std::optional<ByteMap> luma, std::optional<ByteMap> chroma)
      : kernels_(kernels),
        width_(conversion.width),
        height_(conversion.height),
        from_(info(conversion.source)),
        to_(info(conversion.target)),
        packed_(is_packed(conversion.source)),
        means_(means_of(conversion)),
        luma_(luma),
        chroma_(chroma) {}

  void run(const ConstImageView& source, const ImageView& target, int row_begin,
           int row_end) const override {
    const int step = to_.chroma_half_height ? 2 : 1;
    if (packed_) {
      for (int y = row_begin; y < row_end; y += step) {
        unpack(source, target, y, std::min(step, height_ - y));
      }
      return;
    }
    // Plane by plane, because memory is slower when more planes are read and written at once.
    convert_luma(source, target, row_begin, row_end);
    if (to_.gray) return;
    if (from_.plane_count == 3 && to_.plane_count == 3) {
      for (const int plane : {1, 2}) {
        for (int y = row_begin; y < row_end; y += step) {
          convert_plane(mean_rows(source, plane, y), target.row(plane, chroma_row(y)));
        }
      }
      return;
    }
    for (int y = row_begin; y < row_end; y += step) convert_chroma(source, target, y);
  }

  const char* name() const override { return "remap"; }

 private:
  std::size_t width() const { return static_cast<std::size_t>(width_); }
  int chroma_row(int y) const { return to_.chroma_half_height ? y / 2 : y; }
  int chroma_width() const { return to_.chroma_half_width ? (width_ + 1) / 2 : width_; }

  void convert_luma(const ConstImageView& source, const ImageView& target, int begin,
                    int end) const {
    // Where rows follow one another without padding they are one line.
    const bool whole = source.planes[0].pitch == width_ && target.planes[0].pitch == width_;
    const int step = whole ? std::max(end - begin, 1) : 1;
    const std::size_t bytes = width() * static_cast<std::size_t>(step);
    for (int y = begin; y < end; y += step) {
      if (luma_) {
        kernels_.map(source.row(0, y), target.row(0, y), bytes, *luma_);
      } else {
        std::memcpy(target.row(0, y), source.row(0, y), bytes);
      }
    }
  }

  ChromaLines chroma_lines(const ImageView& target, int y) const {
    const int row = chroma_row(y);
    return {target.row(1, row), to_.plane_count == 3 ? target.row(2, row) : nullptr};
  }

  /// The rows of a plane whose mean makes the row of chroma at luma row `y`. A plane with half the
  /// rows has one.
  MeanRows mean_rows(const ConstImageView& source, int plane, int y) const {
    if (!means_.down) return {1, {source.row(plane, from_.chroma_half_height ? y / 2 : y)}};
    const std::uint8_t* const upper = source.row(plane, y);
    const std::uint8_t* const lower = source.row(plane, std::min(y + 1, height_ - 1));
    if (!means_.three_rows) return {2, {upper, lower}};
    return {3, {source.row(plane, std::max(y - 1, 0)), upper, lower}};
  }

  void unpack(const ConstImageView& source, const ImageView& target, int y, int rows) const {
    const bool luma_first = source.format == PixelFormat::kYuyv;
    PackedLines lines{luma_first, mean_rows(source, 0, y), {}, {}};
    lines.luma = {target.row(0, y), rows > 1 ? target.row(0, y + 1) : nullptr};
    lines.chroma = chroma_lines(target, y);
    kernels_.unpack(lines, width() / 2);
    if (width_ % 2 != 0) unpack_last(lines);
  }

  /// The pixel without a neighbour at the end of the rows.
  void unpack_last(const PackedLines& lines) const {
    const std::size_t x = width() - 1;
    const std::size_t luma = lines.luma_first ? 0 : 1;
    const std::size_t upper = lines.rows.count == 3 ? 1 : 0;
    lines.luma[0][x] = lines.rows.row[upper][2 * x + luma];
    if (lines.luma[1] != nullptr) lines.luma[1][x] = lines.rows.row[upper + 1][2 * x + luma];
    std::array<std::uint8_t, 2> uv{};
    for (std::size_t k = 0; k < 2; ++k) {
      MeanRows rows = lines.rows;
      for (std::size_t j = 0; j < rows.count; ++j) rows.row[j] += 2 * x + 1 - luma + 2 * k;
      uv[k] = mean_at(rows, Across::kOne, 0, 0);
    }
    if (lines.chroma.v == nullptr) {
      std::memcpy(lines.chroma.u + x, uv.data(), 2);
    } else {
      lines.chroma.u[x / 2] = uv[0];
      lines.chroma.v[x / 2] = uv[1];
    }
  }

  void convert_chroma(const ConstImageView& source, const ImageView& target, int y) const {
    const ChromaLines to = chroma_lines(target, y);
    const auto count = static_cast<std::size_t>(chroma_width());
    if (from_.gray) {
      std::memset(to.u, kNeutralChroma, to.v == nullptr ? 2 * count : count);
      if (to.v != nullptr) std::memset(to.v, kNeutralChroma, count);
      return;
    }
    if (from_.plane_count == 2) return convert_pairs(mean_rows(source, 1, y).row[0], to, count);
    const MeanRows u = mean_rows(source, 1, y);
    const MeanRows v = mean_rows(source, 2, y);
    if (means_.any()) return merge_means(u, v, to.u, chroma_width());
    kernels_.merge(u.row[0], v.row[0], to.u, count, map());
  }

  /// Interleaved chroma. It has half the rows and columns, as the target has then.
  void convert_pairs(const std::uint8_t* from, const ChromaLines& to, std::size_t count) const {
    if (to.v != nullptr) return kernels_.split(from, to.u, to.v, count, map());
    if (chroma_) return kernels_.map(from, to.u, 2 * count, *chroma_);
    std::memcpy(to.u, from, 2 * count);
  }

  void convert_plane(const MeanRows& rows, std::uint8_t* to) const {
    const auto count = static_cast<std::size_t>(chroma_width());
    if (means_.any()) return means(rows, 0, chroma_width(), to);
    if (chroma_) return kernels_.map(rows.row[0], to, count, *chroma_);
    std::memcpy(to, rows.row[0], count);
  }

  void merge_means(const MeanRows& u, const MeanRows& v, std::uint8_t* to, int count) const {
    std::array<std::array<std::uint8_t, kTile>, 2> tile;
    for (int begin = 0; begin < count; begin += static_cast<int>(kTile)) {
      const int end = std::min(begin + static_cast<int>(kTile), count);
      means(u, begin, end, tile[0].data());
      means(v, begin, end, tile[1].data());
      kernels_.merge(tile[0].data(), tile[1].data(), to + 2 * begin,
                     static_cast<std::size_t>(end - begin), nullptr);
    }
  }

  /// The means [begin, end) of a row, of which the first and the last may lack a neighbour.
  void means(const MeanRows& rows, int begin, int end, std::uint8_t* to) const {
    const int last = (from_.chroma_half_width ? (width_ + 1) / 2 : width_) - 1;
    int first = begin;
    int behind = end;
    if (means_.across == Across::kThree && first == 0)
      to[first++ - begin] = mean_at(rows, means_.across, 0, last);
    if (means_.across != Across::kOne && last % 2 == 0 && behind == chroma_width() &&
        behind > first) {
      --behind;
      to[behind - begin] = mean_at(rows, means_.across, behind, last);
    }
    MeanRows inner = rows;
    const int stride = means_.across == Across::kOne ? 1 : 2;
    for (std::size_t k = 0; k < inner.count; ++k) inner.row[k] += stride * first;
    kernels_.mean(inner, means_.across, to + (first - begin),
                  static_cast<std::size_t>(behind - first));
  }

  const ByteMap* map() const { return chroma_ ? &*chroma_ : nullptr; }

  const RemapKernels& kernels_;
  const int width_;
  const int height_;
  const PixelFormatInfo& from_;
  const PixelFormatInfo& to_;
  const bool packed_;
  const Means means_;
  // Nothing where samples keep their values.
  const std::optional<ByteMap> luma_;
  const std::optional<ByteMap> chroma_;
};

/// The map of a form that depends on its own channel; nothing if it is the identity. `exists`
/// becomes false if there is no map for it.
std::optional<ByteMap> map_of(const LinearForm& form, std::size_t channel, bool& exists) {
  if (is_copy(form, channel)) return std::nullopt;
  const std::optional<ByteMap> map = byte_map(form, channel);
  exists = exists && map;
  return map;
}

bool is_taken(const Conversion& conversion) {
  const auto is_other = [](PixelFormat format) {
    return info(format).rgb || format == PixelFormat::kYuv444;
  };
  const bool packed_to_gray = is_packed(conversion.source) && info(conversion.target).gray;
  return !is_other(conversion.source) && !is_other(conversion.target) && !packed_to_gray &&
         !mixes_channels(conversion);
}

}  // namespace

std::unique_ptr<const Converter> make_remap_converter(const Conversion& conversion) {
  assert(!why_unsupported(conversion));
  const RemapKernels* const kernels = best_remap_kernels();
  if (kernels == nullptr || !is_taken(conversion)) return nullptr;
  const auto forms = color_transform(conversion);
  bool exist = true;
  const std::optional<ByteMap> luma = map_of(forms[0], 0, exist);
  std::optional<ByteMap> chroma;
  if (!info(conversion.source).gray && !info(conversion.target).gray) {
    chroma = map_of(forms[1], 1, exist);
    // One map serves both, and means are not rounded before it.
    assert(is_copy(forms[1], 1) == is_copy(forms[2], 2));
    if (chroma && means_of(conversion).any()) return nullptr;
  }
  if (!exist || ((luma || chroma) && is_packed(conversion.source))) return nullptr;
  return std::make_unique<RemapConverter>(conversion, *kernels, luma, chroma);
}

}  // namespace framelane
