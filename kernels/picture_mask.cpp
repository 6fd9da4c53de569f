#include "kernels/picture_mask.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "kernels/linear_transform.hpp"
#include "kernels/picture_part.hpp"
#include "kernels/wide_int.hpp"

namespace framelane {
namespace {

using Point = MaskShape::Point;
/// Where columns [begin, end) of a row are covered, from left to right.
using Line = std::vector<std::pair<int, int>>;

/// Corners are whole millionths of the picture's sides, so that whole numbers tell what is covered.
constexpr std::int64_t kMillion = 1'000'000;
struct Corner {
  std::int64_t x = 0;
  std::int64_t y = 0;
};

std::vector<Corner> corners_of(std::span<const Point> polygon) {
  std::vector<Corner> corners;
  for (const Point& point : polygon) {
    corners.push_back({std::llround(point.x * kMillion), std::llround(point.y * kMillion)});
  }
  return corners;
}

/// The first column whose centre is not left of the edge from `upper` to `lower`, in a row of
/// pixels that the edge crosses.
int first_column(const Corner& upper, const Corner& lower, int row, const PictureSize& size) {
  // The row's centre is at (2 row + 1) / 2 height, and the edge there at x / d millionths. Column c
  // is not left of that if (2 c + 1) / 2 width >= x / d.
  const Int128 d = Int128{2} * size.height * (lower.y - upper.y);
  const Int128 below = Int128{2 * row + 1} * kMillion - Int128{2} * size.height * upper.y;
  const Int128 x = upper.x * d + below * (lower.x - upper.x);
  const Int128 denominator = 2 * d * kMillion;
  const Int128 numerator = 2 * size.width * x - d * kMillion;
  if (numerator <= 0) return 0;
  const Int128 column = (numerator + denominator - 1) / denominator;
  return static_cast<int>(std::min<Int128>(column, size.width));
}

/// The columns whose centres lie in the polygon, in a row of pixels: between its first edge and its
/// second, and so on. Shapes that share an edge have the same columns there, also if one has only a
/// part of that edge, so that a pixel on it belongs to one of them.
Line covered_columns(std::span<const Corner> polygon, int row, const PictureSize& size) {
  const auto is_above = [&](const Corner& corner) {
    return 2 * size.height * corner.y <= (2 * row + 1) * kMillion;
  };
  std::vector<int> columns;
  for (std::size_t i = 0; i < polygon.size(); ++i) {
    const Corner& a = polygon[i];
    const Corner& b = polygon[(i + 1) % polygon.size()];
    if (is_above(a) == is_above(b)) continue;
    columns.push_back(is_above(a) ? first_column(a, b, row, size) : first_column(b, a, row, size));
  }
  std::ranges::sort(columns);
  Line line;
  for (std::size_t i = 0; i + 1 < columns.size(); i += 2) {
    if (columns[i] < columns[i + 1]) line.emplace_back(columns[i], columns[i + 1]);
  }
  return line;
}

/// What is covered in either line.
Line united(Line a, const Line& b) {
  a.insert(a.end(), b.begin(), b.end());
  std::ranges::sort(a);
  Line result;
  for (const auto& [begin, end] : a) {
    if (!result.empty() && begin <= result.back().second) {
      result.back().second = std::max(result.back().second, end);
    } else {
      result.emplace_back(begin, end);
    }
  }
  return result;
}

/// Positive: a, b and c go round to one side; negative: to the other; 0: they lie in a line.
double orientation(const Point& a, const Point& b, const Point& c) {
  return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
}

/// Of a point that lies in a line with a and b.
bool lies_between(const Point& a, const Point& b, const Point& point) {
  return std::min(a.x, b.x) <= point.x && point.x <= std::max(a.x, b.x) &&
         std::min(a.y, b.y) <= point.y && point.y <= std::max(a.y, b.y);
}

bool meet(const Point& a, const Point& b, const Point& c, const Point& d) {
  const auto side = [](double t) { return t > 0 ? 1 : t < 0 ? -1 : 0; };
  const int sides[] = {side(orientation(a, b, c)), side(orientation(a, b, d)),
                       side(orientation(c, d, a)), side(orientation(c, d, b))};
  if (sides[0] * sides[1] < 0 && sides[2] * sides[3] < 0) return true;
  return (sides[0] == 0 && lies_between(a, b, c)) || (sides[1] == 0 && lies_between(a, b, d)) ||
         (sides[2] == 0 && lies_between(c, d, a)) || (sides[3] == 0 && lies_between(c, d, b));
}

}  // namespace

PictureMask::PictureMask(std::span<const MaskShape> shapes, PixelFormat format,
                         const PictureSize& size, const ColorSpec& color)
    : format_(format) {
  const PixelFormatInfo& layout = info(format);
  const std::size_t count = layout.gray ? 1 : 3;
  for (std::size_t s = 0; s < shapes.size(); ++s) {
    const MaskShape& shape = shapes[s];
    const std::vector<Corner> polygon = corners_of(shape.polygon);
    const auto [left, right] = std::ranges::minmax(polygon, {}, &Corner::x);
    const auto top = std::ranges::min(polygon, {}, &Corner::y);
    const auto width =
        static_cast<int>(((right.x - left.x) * size.width + kMillion - 1) / kMillion);
    const int block = std::max(2, (width + 31) / 32 * 2);
    const auto codes = layout.rgb ? shape.color : codes_of(shape.color, color);
    std::vector<Line> lines;
    bool covers = false;
    for (int y = 0; y < size.height; ++y) {
      lines.push_back(covered_columns(polygon, y, size));
      covers = covers || !lines.back().empty();
    }
    if (!covers && first_without_cover_ < 0) first_without_cover_ = static_cast<int>(s);
    for (std::size_t k = 0; k < count; ++k) {
      const bool chroma = !layout.rgb && k > 0;
      const int across = chroma && layout.chroma_half_width ? 1 : 0;
      const int down = chroma && layout.chroma_half_height ? 1 : 0;
      Cover cover{.channel = k, .runs = {}, .code = codes[k]};
      if (shape.style == MaskShape::Style::kPixelate) {
        cover.block_width = block >> across;
        cover.block_height = block >> down;
        cover.left = static_cast<int>(left.x * size.width / kMillion) / 2 * 2 >> across;
        cover.top = static_cast<int>(top.y * size.height / kMillion) / 2 * 2 >> down;
      }
      for (int y = 0; y < (size.height + down) >> down; ++y) {
        const auto row = static_cast<std::size_t>(y) << down;
        Line line = lines[row];
        if (down != 0 && row + 1 < lines.size()) line = united(line, lines[row + 1]);
        for (auto& [begin, end] : line) {
          begin >>= across;
          end = (end + across) >> across;
        }
        for (const auto& [begin, end] : united(line, {})) cover.runs.push_back({y, begin, end});
      }
      covers_.push_back(std::move(cover));
    }
  }
}

void PictureMask::apply(const ImageView& image) const {
  const auto to = channels(image);
  for (const Cover& cover : covers_) {
    const Channel& channel = to[cover.channel];
    if (cover.block_width > 0) {
      pixelate(cover, channel);
      continue;
    }
    for (const auto& [row, begin, end] : cover.runs) {
      fill_run(channel, row, begin, end, cover.code);
    }
  }
}

void PictureMask::pixelate(const Cover& cover, const Channel& channel) {
  for (std::size_t i = 0; i < cover.runs.size();) {
    // The rows of one row of blocks.
    const int block = (cover.runs[i].row - cover.top) / cover.block_height;
    const int top = cover.top + block * cover.block_height;
    const int bottom = std::min(top + cover.block_height, channel.height);
    std::array<std::uint8_t, kMostBlocks> means{};
    std::array<bool, kMostBlocks> known{};
    const auto mean = [&](std::size_t b) {
      if (known[b]) return means[b];
      const int begin = cover.left + static_cast<int>(b) * cover.block_width;
      const int end = std::min(begin + cover.block_width, channel.width);
      std::int64_t sum = 0;
      for (int y = top; y < bottom; ++y) {
        for (int x = begin; x < end; ++x) sum += channel.at(x, y);
      }
      const std::int64_t samples = std::int64_t{end - begin} * (bottom - top);
      known[b] = true;
      return means[b] = static_cast<std::uint8_t>((2 * sum + samples) / (2 * samples));
    };
    // All means are taken before anything is written.
    std::size_t end = i;
    for (; end < cover.runs.size() && cover.runs[end].row < bottom; ++end) {
      const Run& run = cover.runs[end];
      const int last = (run.end - 1 - cover.left) / cover.block_width;
      for (int b = (run.begin - cover.left) / cover.block_width; b <= last; ++b) {
        mean(static_cast<std::size_t>(b));
      }
    }
    for (; i < end; ++i) {
      const auto& [row, first, last] = cover.runs[i];
      for (int x = first; x < last; ++x) {
        channel.at(x, row) = mean(static_cast<std::size_t>((x - cover.left) / cover.block_width));
      }
    }
  }
}

const char* why_no_polygon(std::span<const Point> polygon) {
  if (polygon.size() < 3) return "has fewer than three points";
  if (polygon.size() > kMostPolygonPoints) return "has more than 1000 points";
  double area = 0;
  for (std::size_t i = 0; i < polygon.size(); ++i) {
    const Point& a = polygon[i];
    const Point& b = polygon[(i + 1) % polygon.size()];
    area += a.x * b.y - b.x * a.y;
  }
  for (std::size_t i = 0; i < polygon.size(); ++i) {
    const std::size_t i_end = (i + 1) % polygon.size();
    if (polygon[i] == polygon[i_end]) return "has the same point twice in a row";
    for (std::size_t j = i + 1; j < polygon.size(); ++j) {
      const std::size_t j_end = (j + 1) % polygon.size();
      if (j == i_end || j_end == i) {  // they have one point in common
        const Point& middle = j == i_end ? polygon[j] : polygon[i];
        const Point& from = j == i_end ? polygon[i] : polygon[i_end];
        const Point& to = j == i_end ? polygon[j_end] : polygon[j];
        if (orientation(from, middle, to) == 0 && !lies_between(from, to, middle)) {
          return "goes back on itself";
        }
        continue;
      }
      if (meet(polygon[i], polygon[i_end], polygon[j], polygon[j_end])) return "crosses itself";
    }
  }
  return std::abs(area) < 1e-9 ? "has no area" : nullptr;
}

}  // namespace framelane
