#include "kernels/picture_mask.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <tuple>
#include <utility>

#include "kernels/linear_transform.hpp"
#include "kernels/picture_part.hpp"

namespace framelane {
namespace {

using Point = MaskShape::Point;
/// Where columns [begin, end) of a row are covered, from left to right.
using Line = std::vector<std::pair<int, int>>;

/// The first sample of `samples` whose centre is not left of `where`, a fraction of the whole.
int first_from(double where, int samples) {
  const double place = std::ceil(where * samples - 0.5);
  return static_cast<int>(std::clamp(place, 0.0, static_cast<double>(samples)));
}

/// The columns whose centres lie in the polygon, in a row of pixels: between its first edge and its
/// second, and so on.
Line covered_columns(std::span<const Point> polygon, int row, const PictureSize& size) {
  const double y = (row + 0.5) / size.height;
  std::vector<double> edges;
  for (std::size_t i = 0; i < polygon.size(); ++i) {
    const Point& a = polygon[i];
    const Point& b = polygon[(i + 1) % polygon.size()];
    if ((a.y <= y) == (b.y <= y)) continue;
    // From its upper end, so that shapes which share an edge round it alike, and a pixel on it
    // belongs to one of them.
    const auto& [upper, lower] = a.y < b.y ? std::tie(a, b) : std::tie(b, a);
    edges.push_back(upper.x + (y - upper.y) / (lower.y - upper.y) * (lower.x - upper.x));
  }
  std::ranges::sort(edges);
  Line line;
  for (std::size_t i = 0; i + 1 < edges.size(); i += 2) {
    const int begin = first_from(edges[i], size.width);
    const int end = first_from(edges[i + 1], size.width);
    if (begin < end) line.emplace_back(begin, end);
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

/// Positive: a, b and c turn to one side; negative: to the other; 0: they lie in a line.
double turn(const Point& a, const Point& b, const Point& c) {
  return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
}

/// Of a point that lies in a line with a and b.
bool lies_between(const Point& a, const Point& b, const Point& point) {
  return std::min(a.x, b.x) <= point.x && point.x <= std::max(a.x, b.x) &&
         std::min(a.y, b.y) <= point.y && point.y <= std::max(a.y, b.y);
}

bool meet(const Point& a, const Point& b, const Point& c, const Point& d) {
  const auto side = [](double t) { return t > 0 ? 1 : t < 0 ? -1 : 0; };
  const int sides[] = {side(turn(a, b, c)), side(turn(a, b, d)), side(turn(c, d, a)),
                       side(turn(c, d, b))};
  if (sides[0] * sides[1] < 0 && sides[2] * sides[3] < 0) return true;
  return (sides[0] == 0 && lies_between(a, b, c)) || (sides[1] == 0 && lies_between(a, b, d)) ||
         (sides[2] == 0 && lies_between(c, d, a)) || (sides[3] == 0 && lies_between(c, d, b));
}

}  // namespace

PictureMask::PictureMask(std::span<const MaskShape> shapes, PixelFormat format,
                         const PictureSize& size, const ColorSpec& color) {
  const PixelFormatInfo& layout = info(format);
  const std::size_t count = layout.gray ? 1 : 3;
  for (std::size_t s = 0; s < shapes.size(); ++s) {
    const MaskShape& shape = shapes[s];
    const auto [left, right] = std::ranges::minmax(shape.polygon, {}, &Point::x);
    const auto top = std::ranges::min(shape.polygon, {}, &Point::y);
    const int width = static_cast<int>(std::ceil((right.x - left.x) * size.width));
    const int block = std::max(2, (width + 31) / 32 * 2);
    const auto codes = layout.rgb ? shape.color : codes_of(shape.color, color);
    std::vector<Line> lines;
    bool covers = false;
    for (int y = 0; y < size.height; ++y) {
      lines.push_back(covered_columns(shape.polygon, y, size));
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
        cover.left = static_cast<int>(left.x * size.width) / 2 * 2 >> across;
        cover.top = static_cast<int>(top.y * size.height) / 2 * 2 >> down;
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
  constexpr std::size_t kMostBlocks = 20;  // across: 16, and those that the box begins or ends in
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
        if (turn(from, middle, to) == 0 && !lies_between(from, to, middle)) {
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
