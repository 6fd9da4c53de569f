#include "kernels/cuda/tile_tables.hpp"

#include <algorithm>
#include <cstddef>

namespace framelane {

TileAcrossTable::TileAcrossTable(const AxisFloats& axis) {
  const int samples = axis.table.samples();
  const int taps = axis.table.taps();
  for (int x = 0; x < samples; ++x) quads = std::max(quads, (axis.first(x) % 4 + taps + 3) / 4);
  weights.resize(std::size_t{4} * static_cast<std::size_t>(quads) *
                 static_cast<std::size_t>(samples));
  for (int x = 0; x < samples; ++x) {
    for (int i = 0; i < taps; ++i) {
      const int place = axis.first(x) % 4 + i;
      const int weight = (place / 4 * samples + x) * 4 + place % 4;
      weights[static_cast<std::size_t>(weight)] = axis.of(x)[i];
    }
  }
}

TileDownTable::TileDownTable(const AxisFloats& axis, int source_rows) {
  const int target_rows = axis.table.samples();
  const auto at_once = static_cast<std::size_t>((target_rows + source_rows - 1) / source_rows);
  const int apart = std::max(source_rows / target_rows, 1);
  std::vector<std::int32_t> begin;
  for (int y = 0; y < target_rows; ++y) {
    const float* const weights = axis.of(y);
    int first = 0, end = axis.table.taps();
    while (first + 1 < end && weights[first] == 0) ++first;
    while (first + 1 < end && weights[end - 1] == 0) --end;
    begin.push_back(axis.first(y) + first);
    const std::int32_t least = last.empty()            ? 0
                               : last.size() < at_once ? last.back()
                                                       : *(last.end() - at_once) + apart;
    last.push_back(std::max(axis.first(y) + end - 1, least));
  }
  // Row y may take the slot of row y - slots, which has to end before.
  for (int y = 0; y < target_rows; ++y) {
    const auto at = static_cast<std::size_t>(y);
    slots = std::max(slots, 1);
    while (slots <= y && last[at - static_cast<std::size_t>(slots)] >= begin[at]) ++slots;
  }
  const int end = std::max(source_rows, last.back() + 1) + kRowsBeyond;
  for (int row = 0; row < end; ++row) {
    const auto done = std::ranges::upper_bound(last, row) - last.begin();
    rows.push_back({{}, static_cast<std::int32_t>(done)});
  }
}

void TileDownTable::set_weights(const AxisFloats& axis, int slots_used, float unit) {
  for (int y = 0; y < axis.table.samples(); ++y) {
    for (int j = 0; j < axis.table.taps(); ++j) {
      if (axis.of(y)[j] == 0) continue;
      const int row = axis.first(y) + j;
      rows[static_cast<std::size_t>(row)].weights[y % slots_used] = axis.of(y)[j] * unit;
    }
  }
}

int TileDownTable::most_rows(int source_rows) const {
  int most = 0;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const std::size_t end = std::min(row + static_cast<std::size_t>(source_rows), rows.size());
    most = std::max(most, rows[end - 1].done - (row > 0 ? rows[row - 1].done : 0));
  }
  return most;
}

}  // namespace framelane
