#include "kernels/picture_mask.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <utility>

#include "kernels/linear_transform.hpp"
#include "kernels/picture_part.hpp"
#include "kernels/sample_runs.hpp"
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

/// Rows of pixels that are filled in all channels before the next ones are. Even.
constexpr int kBandRows = 32;

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

using Cover = PictureMask::Cover;
using Run = PictureMask::Run;

/// What is read or written for a cover that has runs, perhaps up to rows below the picture.
RowRange rows_of(const Cover& cover) {
  const RowRange rows{cover.runs.front().row, cover.runs.back().row + 1};
  if (cover.block_height == 0) return rows;
  return {cover.block_top(rows.begin), cover.block_top(rows.end - 1) + cover.block_height};
}

/// A thread's, so that nothing is allocated for each picture.
struct Scratch {
  std::vector<std::uint8_t> codes{};  // what is to be seen in a row
  std::vector<std::uint16_t> sums{};  // of columns

  void make_room_for(std::size_t row_bytes) {
    if (codes.size() >= row_bytes) return;
    sums.resize(row_bytes);
    codes.resize(row_bytes);  // the last one: its size says that there is room in both
  }
};

/// What a shape covers in one plane: in several channels, if their samples lie in the same cells.
class CoveredPlane {
 public:
  CoveredPlane(const Cover& cover, const Channel& channel)
      : cover_(cover), left_(cover.runs), first_(channel), members_{{{0, cover.code}}} {}

  /// False if these samples do not lie in the same cells. Otherwise the same runs are covered.
  bool add(const Cover& cover, const Channel& channel) {
    const std::ptrdiff_t offset = channel.data - first_.data;
    if (channel.step != first_.step || std::abs(offset) >= first_.step) return false;
    if (offset < 0) {
      for (Member& member : members_) member.offset -= static_cast<int>(offset);
      first_ = channel;
    }
    members_[count_++] = {static_cast<int>(std::max<std::ptrdiff_t>(offset, 0)), cover.code};
    return true;
  }
  /// Covers the rows of a band. Bands follow one another from 0 on. False: that was the last.
  bool cover_band(int band, Scratch& scratch);

 private:
  struct Member {
    int offset = 0;  // of its samples in the cells, which begin with first_'s
    std::uint8_t code = 0;
  };
  std::span<const Member> members() const { return std::span(members_).first(count_); }
  void show_code(std::span<const Run> runs, Scratch& scratch) const;
  void show_means(std::span<const Run> runs, Scratch& scratch) const;
  void copy(std::span<const Run> runs, const Scratch& scratch, int left) const;
  SampleCells cells() const;
  /// In a row, which begins with a cell.
  std::size_t place_of(int cell, int offset) const {
    return static_cast<std::size_t>(cell) * static_cast<std::size_t>(first_.step) +
           static_cast<std::size_t>(offset);
  }

  const Cover& cover_;
  std::span<const Run> left_;
  Channel first_;  // in memory
  std::array<Member, 3> members_{};
  std::size_t count_ = 1;
};

bool CoveredPlane::cover_band(int band, Scratch& scratch) {
  const int end = cover_.top + (band + 1) * cover_.band_height;
  const auto behind = std::ranges::find_if(left_, [&](const Run& run) { return run.row >= end; });
  const auto runs = left_.first(static_cast<std::size_t>(behind - left_.begin()));
  left_ = left_.subspan(runs.size());
  if (runs.empty()) return !left_.empty();
  if (cover_.block_width > 0) {
    show_means(runs, scratch);
  } else {
    show_code(runs, scratch);
  }
  return !left_.empty();
}

void CoveredPlane::show_code(std::span<const Run> runs, Scratch& scratch) const {
  int begin = runs.front().begin;
  int end = 0;
  for (const Run& run : runs) {
    begin = std::min(begin, run.begin);
    end = std::max(end, run.end);
  }
  for (const auto& [offset, code] : members()) {
    fill_samples(&scratch.codes[static_cast<std::size_t>(offset)], first_.step, end - begin, code);
  }
  copy(runs, scratch, begin);
}

/// `runs`: those of one row of blocks.
void CoveredPlane::show_means(std::span<const Run> runs, Scratch& scratch) const {
  const int top = cover_.block_top(runs.front().row);
  const int bottom = std::min(top + cover_.block_height, first_.height);
  int begin = first_.width;
  int end = 0;
  for (const Run& run : runs) {
    begin = std::min(begin, cover_.block_left(run.begin));
    end = std::max(end, cover_.block_left(run.end - 1) + cover_.block_width);
  }
  end = std::min(end, first_.width);

  const auto block_of = [&](int x) {
    return static_cast<std::size_t>((x - begin) / cover_.block_width);
  };
  using Sums = std::array<std::uint64_t, PictureMask::kMostBlocks>;
  std::array<Sums, 3> sums{};
  const SampleCells cells = this->cells();
  for (int y = top; y < bottom; y += kMostRowsToAdd) {
    add_rows(&first_.at(begin, y), first_.pitch, cells.bytes(end - begin),
             std::min(bottom - y, kMostRowsToAdd), scratch.sums.data());
    for (std::size_t m = 0; m < count_; ++m) {
      for (int x = begin; x < end; ++x) {
        sums[m][block_of(x)] += scratch.sums[place_of(x - begin, members_[m].offset)];
      }
    }
  }
  for (int x = begin; x < end; x += cover_.block_width) {
    const int width = std::min(cover_.block_width, end - x);
    const auto samples =
        static_cast<std::uint64_t>(width) * static_cast<std::uint64_t>(bottom - top);
    for (std::size_t m = 0; m < count_; ++m) {
      const std::uint64_t mean = (2 * sums[m][block_of(x)] + samples) / (2 * samples);
      fill_samples(&scratch.codes[place_of(x - begin, members_[m].offset)], first_.step, width,
                   static_cast<std::uint8_t>(mean));
    }
  }
  copy(runs, scratch, begin);
}

/// Copies codes, of which the first belongs to column `left`.
void CoveredPlane::copy(std::span<const Run> runs, const Scratch& scratch, int left) const {
  const SampleCells cells = this->cells();
  for (const auto& [row, begin, end] : runs) {
    cells.copy(&scratch.codes[place_of(begin - left, 0)], &first_.at(begin, row), end - begin);
  }
}

SampleCells CoveredPlane::cells() const {
  SampleCells cells(first_.step);
  for (const Member& member : members()) cells.add(member.offset);
  return cells;
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
      Cover cover{.channel = k, .runs = {}, .code = codes[k], .band_height = kBandRows >> down};
      if (shape.style == MaskShape::Style::kPixelate) {
        cover.block_width = block >> across;
        cover.block_height = block >> down;
        cover.left = static_cast<int>(left.x * size.width / kMillion) / 2 * 2 >> across;
        cover.top = static_cast<int>(top.y * size.height / kMillion) / 2 * 2 >> down;
        cover.band_height = cover.block_height;
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
      if (!cover.runs.empty()) {
        const RowRange reach = rows_of(cover);
        rows_.begin =
            rows_.empty() ? reach.begin << down : std::min(rows_.begin, reach.begin << down);
        rows_.end = std::max(rows_.end, std::min(reach.end << down, size.height));
      }
      covers_.push_back(std::move(cover));
    }
  }
}

void PictureMask::apply(const ImageView& image) const {
  const auto to = channels(image);
  const std::size_t count = info(format_).gray ? 1 : 3;
  static thread_local Scratch scratch;
  scratch.make_room_for(4 * static_cast<std::size_t>(image.width));  // no sample has more bytes
  for (std::size_t i = 0; i < covers_.size(); i += count) {
    std::array<std::optional<CoveredPlane>, 3> planes;
    std::size_t used = 0;
    for (std::size_t k = i; k < i + count; ++k) {
      const Channel& channel = to[covers_[k].channel];
      if (used > 0 && planes[used - 1]->add(covers_[k], channel)) continue;
      planes[used++].emplace(covers_[k], channel);
    }
    bool left = true;
    for (int band = 0; left; ++band) {
      left = false;
      for (std::size_t p = 0; p < used; ++p) left |= planes[p]->cover_band(band, scratch);
    }
  }
}

const char* why_no_polygon(std::span<const Point> polygon) {
  if (polygon.size() < 3) return "has fewer than three points";
  if (polygon.size() > kMostPolygonPoints) return "has more than 1000 points";
  if (polygon.size() > 3 && polygon.front() == polygon.back()) {
    return "ends with its first point again; leave that out, a polygon closes by itself";
  }
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
