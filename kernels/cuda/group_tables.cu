#include "kernels/cuda/group_tables.cuh"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace framelane::cuda {
namespace {

constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 15) / 16 * 16; }

/// How many columns tiles of the first of `groups` have; the other one has its share. 0: none.
int columns_that_fit(std::span<const GroupTables> groups) {
  const int width = groups.front().columns();
  for (int tiles = 1; tiles <= width; ++tiles) {
    const int columns = ((width + tiles - 1) / tiles + 1) / 2 * 2;
    bool fit = columns <= kTileColumns;
    for (int x = 0; x < width && fit; x += columns) {
      int begin = 1 << 30, end = 0;
      for (const GroupTables& group : groups) {
        const int half = &group != &groups.front() ? group.half_width : 0;
        const int first = x >> half;
        const int last = std::min((x + columns) >> half, group.columns()) - 1;
        const auto place = [&](int i) { return group.constants.across.first(i) / 4 * 4; };
        if (first > last) continue;
        begin = std::min(begin, place(first));
        end = std::max(end, place(last) + 4 * group.across.quads);
      }
      fit = end - begin <= kTileColumns;
    }
    if (fit) return columns;
    if (columns == 2) break;
  }
  return 0;
}

}  // namespace

GroupTables::GroupTables(const ScaleTerm& term, const WholeNumbers& whole, int source_rows)
    : constants(term, whole),
      divisor(whole.divisor()),
      across(constants.across),
      down(constants.down, source_rows) {}

std::size_t GroupTables::bytes() const {
  return constants.bytes() + aligned(std::span(across.weights).size_bytes()) +
         aligned(std::span(down.rows).size_bytes()) + aligned(std::span(down.last).size_bytes());
}

void GroupTables::write(std::uint8_t* to) const {
  constants.across.write(to);
  constants.down.write(to + constants.across.bytes());
  to += constants.bytes();
  const auto put = [&to](auto numbers) {
    std::memcpy(to, numbers.data(), numbers.size_bytes());
    to += aligned(numbers.size_bytes());
  };
  put(std::span(across.weights));
  put(std::span(down.rows));
  put(std::span(down.last));
}

TileGroup GroupTables::view(const std::uint8_t*& at) const {
  const ScaleTermView term = constants.view(at);
  TileGroup group{};
  group.exact = term.exact;
  group.across.first = term.exact.across.first;
  group.across.quads = across.quads;
  group.across.samples = constants.across.table.samples();
  group.down.first = term.exact.down.first;
  const auto take = [&at](auto& pointer, std::size_t bytes) {
    pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(at);
    at += aligned(bytes);
  };
  take(group.across.weights, std::span(across.weights).size_bytes());
  group.down.row_count = static_cast<int>(down.rows.size());
  take(group.down.rows, std::span(down.rows).size_bytes());
  take(group.down.last, std::span(down.last).size_bytes());
  return group;
}

bool TileSize::find(std::span<const GroupTables> groups, bool together) {
  for (const GroupTables& group : groups) slots = std::max(slots, group.down.slots);
  if (slots > kMostSlots) return false;
  slots = slots > kFewSlots ? kMostSlots : kFewSlots;
  if (together) {
    columns[0] = columns_that_fit(groups);
    columns[1] = columns[0] >> (groups.size() > 1 ? groups[1].half_width : 0);
  } else {
    for (std::size_t g = 0; g < groups.size(); ++g) {
      columns[g] = columns_that_fit(groups.subspan(g, 1));
    }
  }
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (columns[g] == 0) return false;
  }
  return find_turn(groups, together);
}

bool TileSize::find_turn(std::span<const GroupTables> groups, bool together) {
  constexpr std::size_t kMost =
      kMostSharedBytes - ScaleTile<RgbTileSource<true, true>, kFewSlots>::kFixedBytes;
  // Long turns wait less often, and keep all threads busy across, but take room from the cache.
  constexpr std::size_t kEnough = std::size_t{20} * 1024;
  for (turn_rows = 4 * kStep; turn_rows >= kStep; turn_rows /= 2) {
    lines = 0;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      most_rows[g] = groups[g].down.most_rows(turn_rows);
      const int own = most_rows[g] * (g == 0 ? 1 : 2);
      lines = together ? lines + own : std::max(lines, own);
    }
    if (line_bytes() <= (turn_rows > 2 * kStep ? kEnough : kMost)) return true;
  }
  return false;
}

}  // namespace framelane::cuda
