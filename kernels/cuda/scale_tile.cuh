// Longer than 400 lines: one kernel, whose steps share its tables and what a group keeps in shared
// memory.
#pragma once

#include <cstring>

#include "kernels/cuda/arithmetic.cuh"
#include "kernels/cuda/async_copy.cuh"
#include "kernels/cuda/scale_doubt.cuh"
#include "kernels/cuda/scale_source.cuh"
#include "kernels/cuda/tile.hpp"
#include "kernels/cuda/tile_group.cuh"

// Pictures of which a row of the source is part of few rows of the target: those that become
// smaller, and some that become a little higher. A block makes a tile of the target. It goes down
// the source's rows once; a thread has four columns. Each row is added, with a weight, to as many
// of the target's rows as it is part of (`slots`, at most 4 or 6). What is complete goes to shared
// memory, where threads filter it across.

namespace framelane::cuda {

FRAMELANE_HD float4 four_at(const float* at) {
  return load<float4>(reinterpret_cast<const std::uint8_t*>(at));
}

/// Source knows where a thread's four columns are (place), reads a row of them (load), and makes
/// them numbers of each line (values). Lines are what is filtered: line 0 becomes luma, and lines 1
/// and 2 become chroma. With kSeparate, luma and chroma have blocks of their own.
template <typename SourceOfTile, int kSlotCount>
struct ScaleTile {
  using Source = SourceOfTile;
  using Raw = typename Source::Raw;
  static constexpr int kSlots = kSlotCount;
  static constexpr int kLines = Source::kLines;
  static constexpr int kWarps = DoubtLists::kWarps;
  /// Lines that a thread filters across at once: more take more registers than there are.
  static constexpr int kAtOnce = Source::kSeparate ? 4 : 2;
  static constexpr int kBlocks = kSlots > 4 ? 2 : 4;

  Source source;
  TileGroup groups[2];                   // luma, chroma
  TileOutput outputs[3];                 // of the lines: luma's, and the two of chroma
  SumForm exact[3];                      // of the channels
  unsigned luma_blocks;                  // in the grid's y, if chroma has blocks of its own
  int turn_rows;                         // of the source
  TileFrame frames[kMostFramesOfTiles];  // in the grid's z

  /// A warp's copy of the tables for kAhead rows.
  using Tables = TileDownTable::Row[kAhead][2];
  /// What is in shared memory before the lines.
  static constexpr std::size_t kFixedBytes =
      sizeof(DoubtLists) + kWarps * sizeof(Tables) + kAhead * kBlockThreads * sizeof(Raw);

  struct Rows {
    int begin, end;  // of the tile, that are made
    int done;        // before the turn
    int now;         // in the turn
  };
  struct State {
    float sums[kLines][kSlots][4];
    typename Source::Place place;
    Rows rows[2];
    int row, row_end, column;  // of the source
    unsigned step;             // how many steps are made
  };

  FRAMELANE_HD void begin(TileThread thread, State& state, float* shared) const {
    if (thread.thread % kWarp == 0) doubts_in(shared).lists[thread.thread / kWarp].count = 0;
    each_kind(thread,
              [&](auto lines) { begin_tile<lines.kFirst, lines.kEnd>(thread, state, shared); });
  }
  FRAMELANE_HD int turns(const State& state) const {
    return (state.row_end - state.row + turn_rows - 1) / turn_rows;
  }
  FRAMELANE_HD void fill(TileThread thread, State& state, float* shared) const {
    each_kind(thread, [&](auto lines) {
      go_down<lines.kFirst, lines.kEnd>(thread, state, shared, lines_in(shared));
    });
  }
  FRAMELANE_HD void use(TileThread thread, State& state, float* shared) const {
    const float* const from = lines_in(shared);
    each_kind(thread, [&](auto lines) {
      if constexpr (lines.kFirst == 0) go_across<0, 1>(thread, state, from, shared);
      if constexpr (lines.kEnd > 1) {
        const int skipped = lines.kFirst == 0 ? groups[0].most_rows : 0;
        go_across<1, 2>(thread, state, from + skipped * kTileColumns, shared);
      }
    });
  }
  FRAMELANE_HD void finish(TileThread thread, State& state, float* shared) const {
    if (state.row_end == 0) return;  // an empty tile: there was no barrier since begin()
#ifndef __CUDA_ARCH__
    if (thread.thread % kWarp != 0) return;  // which makes the work of its warp
#endif
    const DoubtLists& doubts = doubts_in(shared);
    if (doubts.are_full()) {
      each_kind(thread, [&](auto lines) {
        if constexpr (lines.kFirst == 0) decide_all<0, 1>(thread, state);
        if constexpr (lines.kEnd > 1) decide_all<1, 2>(thread, state);
      });
      return;
    }
    // Warps take turns with the doubts of each list.
    const int warp = static_cast<int>(thread.thread) / kWarp;
    for (int l = 0; l < kWarps; ++l) {
      const DoubtLists::List& list = doubts.lists[l];
      for (int i = (warp + l) % kWarps; i < list.count; i += kWarps) {
        decide(thread, Doubt::of(list.doubts[i]));
      }
    }
  }

 private:
  FRAMELANE_HD static DoubtLists& doubts_in(float* shared) {
    return *reinterpret_cast<DoubtLists*>(shared);
  }
  FRAMELANE_HD static float* lines_in(float* shared) {
    return shared + kFixedBytes / sizeof(float);
  }
  FRAMELANE_HD static Tables& tables_in(TileThread thread, float* shared) {
    auto* const tables = reinterpret_cast<Tables*>(shared + sizeof(DoubtLists) / sizeof(float));
    return tables[thread.thread / kWarp];
  }
  /// Where the thread's samples of kAhead rows are, a block's threads apart.
  FRAMELANE_HD static Raw* raw_in(TileThread thread, float* shared) {
    constexpr std::size_t kBefore = sizeof(DoubtLists) + kWarps * sizeof(Tables);
    return reinterpret_cast<Raw*>(shared + kBefore / sizeof(float)) + thread.thread;
  }

  template <int kFirstLine, int kEndLine>
  struct Lines {
    static constexpr int kFirst = kFirstLine;
    static constexpr int kEnd = kEndLine;
  };

  /// Lines 0 (luma), 1 and 2 (chroma): all of them, or those that this block has.
  template <typename Work>
  FRAMELANE_HD void each_kind(TileThread thread, Work work) const {
    if constexpr (!Source::kSeparate) {
      work(Lines<0, kLines>{});
    } else if (thread.y < luma_blocks) {
      work(Lines<0, 1>{});
    } else {
      work(Lines<1, 3>{});
    }
  }

  template <int kFirst, int kEnd>
  FRAMELANE_HD void begin_tile(TileThread thread, State& state, float* shared) const {
    const unsigned block = kFirst == 0 ? thread.y : thread.y - luma_blocks;
    int row = 1 << 30, row_end = 0, column = 1 << 30;
    FRAMELANE_UNROLL
    for (int g = 0; g < 2; ++g) {
      if (g == 0 ? kFirst > 0 : kEnd == 1) continue;
      const TileGroup& group = groups[g];
      Rows& rows = state.rows[g];
      rows.begin = group.row_begin + static_cast<int>(block) * group.rows;
      rows.end = at_most(rows.begin + group.rows, group.row_end);
      const int x = static_cast<int>(thread.x) * group.columns;
      if (x >= group.across.samples || rows.begin >= rows.end) continue;
      row = at_most(row, group.down.first[rows.begin]);
      row_end = at_least(row_end, group.down.last[rows.end - 1] + 1);
      column = at_most(column, group.across.first[x] & ~3);
    }
    state.row = row;
    state.row_end = row_end;
    state.column = column;
    state.step = 0;
    if (row >= row_end) {
      state.row = state.row_end = 0;
      return;
    }
    FRAMELANE_UNROLL
    for (int g = 0; g < 2; ++g) {
      if (g == 0 ? kFirst > 0 : kEnd == 1) continue;
      state.rows[g].now = row > 0 ? groups[g].down.rows[row - 1].done : 0;
    }
    FRAMELANE_UNROLL
    for (int line = 0; line < kEnd - kFirst; ++line) {
      FRAMELANE_UNROLL
      for (int s = 0; s < kSlots; ++s) {
        FRAMELANE_UNROLL
        for (int c = 0; c < 4; ++c) state.sums[line][s][c] = 0;
      }
    }
    state.place = source.template place<kFirst>(frames[thread.z],
                                                column + 4 * static_cast<int>(thread.thread));
    FRAMELANE_UNROLL
    for (int i = 0; i < kAhead; i += kStep) {
      FRAMELANE_UNROLL
      for (int j = i; j < i + kStep; ++j) {
        load_row<kFirst, kEnd>(thread, state, row + j, raw_in(thread, shared)[j * kBlockThreads]);
      }
      load_tables<kFirst, kEnd>(thread, row + i, &tables_in(thread, shared)[i]);
      end_copies();
    }
  }

  /// (Rows beyond the source have no weight.)
  template <int kFirst, int kEnd>
  FRAMELANE_HD void load_row(TileThread thread, const State& state, int row, Raw& to) const {
    const TileFrame& frame = frames[thread.z];
    source.template load<kFirst, kEnd>(frame, state.place,
                                       at_most(row, frame.from[kFirst].height - 1), to);
  }

  /// Begins to copy the tables for kStep rows. Each lane copies 16 bytes.
  template <int kFirst, int kEnd>
  FRAMELANE_HD void load_tables([[maybe_unused]] TileThread thread, [[maybe_unused]] int row,
                                [[maybe_unused]] TileDownTable::Row (*to)[2]) const {
#ifdef __CUDA_ARCH__
    constexpr int kPieces = sizeof(TileDownTable::Row) / 16;
    const int lane = static_cast<int>(thread.thread % kWarp);
    const int piece = lane % kPieces;
    const int j = lane / kPieces % kStep;
    const int g = lane / kPieces / kStep;
    if (g < (kFirst == 0 ? 0 : 1) || g >= (kEnd == 1 ? 1 : 2)) return;
    const TileDown& down = groups[g].down;
    const TileDownTable::Row* const from = down.rows + at_most(row + j, down.row_count - 1);
    copy_async<16>(reinterpret_cast<std::uint8_t*>(&to[j][g]) + 16 * piece,
                   reinterpret_cast<const std::uint8_t*>(from) + 16 * piece);
#endif
  }

  /// The last rows may lie beyond the tile's, where nothing of the tile ends any more.
  template <int kFirst, int kEnd>
  FRAMELANE_HD void go_down(TileThread thread, State& state, float* shared, float* lines) const {
    float* const to_line = lines + 4 * thread.thread;
    FRAMELANE_UNROLL
    for (int g = 0; g < 2; ++g) {
      if (g == 0 ? kFirst == 0 : kEnd > 1) state.rows[g].done = state.rows[g].now;
    }
    const int end = at_most(state.row + turn_rows, state.row_end);
    FRAMELANE_NO_UNROLL
    for (; state.row < end; state.row += kStep) {
      const int place = static_cast<int>(state.step++ % (kAhead / kStep)) * kStep;
      Raw* const raw = raw_in(thread, shared) + place * kBlockThreads;
      TileDownTable::Row(*const tables)[2] = &tables_in(thread, shared)[place];
      wait_for_copies<kAhead / kStep - 1>();
#ifdef __CUDA_ARCH__
      __syncwarp();  // other lanes have copied the tables
#endif
      FRAMELANE_UNROLL
      for (int j = 0; j < kStep; ++j) {
#ifdef __CUDA_ARCH__
        const TileDownTable::Row(&table)[2] = tables[j];
#else
        TileDownTable::Row table[2];
        for (int g = kFirst == 0 ? 0 : 1; g < (kEnd == 1 ? 1 : 2); ++g) {
          const TileDown& down = groups[g].down;
          table[g] = down.rows[at_most(state.row + j, down.row_count - 1)];
        }
#endif
        float values[kLines][4];
        source.template values<kFirst, kEnd>(state.place, raw[j * kBlockThreads], values);
        load_row<kFirst, kEnd>(thread, state, state.row + j + kAhead, raw[j * kBlockThreads]);
        if constexpr (kFirst == 0) add<0, 1>(table[0], values, state);
        if constexpr (kEnd > 1) add<1 - kFirst, 2>(table[1], values, state);
        if constexpr (kFirst == 0) give<0, 1>(table[0].done, state.rows[0], state, to_line);
        if constexpr (kEnd > 1) {
          const int skipped = kFirst == 0 ? groups[0].most_rows : 0;
          give<1 - kFirst, 2>(table[1].done, state.rows[1], state,
                              to_line + skipped * kTileColumns);
        }
      }
#ifdef __CUDA_ARCH__
      __syncwarp();  // no lane needs the tables any more
#endif
      load_tables<kFirst, kEnd>(thread, state.row + kAhead, tables);
      end_copies();
    }
  }

  template <int kFirst, int kCount>
  FRAMELANE_HD static void add(const TileDownTable::Row& row, const float (&values)[kLines][4],
                               State& state) {
    const float* const at = row.weights;
    const float4 four = four_at(at);
    float weights[kSlots] = {four.x, four.y, four.z, four.w};
    FRAMELANE_UNROLL
    for (int s = 4; s < kSlots; ++s) weights[s] = at[s];
    FRAMELANE_UNROLL
    for (int line = kFirst; line < kFirst + kCount; ++line) {
      FRAMELANE_UNROLL
      for (int s = 0; s < kSlots; ++s) {
        FRAMELANE_UNROLL
        for (int c = 0; c < 4; ++c) state.sums[line][s][c] += weights[s] * values[line][c];
      }
    }
  }

  /// Gives the target's rows before row `end`, which are complete, to shared memory.
  template <int kFirst, int kCount>
  FRAMELANE_HD static void give(int end, Rows& rows, State& state, float* to) {
    for (; rows.now < end; ++rows.now) {
      const int slot = static_cast<int>(static_cast<unsigned>(rows.now) % kSlots);
      float* const to_row = to + (rows.now - rows.done) * kCount * kTileColumns;
      FRAMELANE_UNROLL
      for (int s = 0; s < kSlots; ++s) {
        if (s != slot) continue;
        FRAMELANE_UNROLL
        for (int line = 0; line < kCount; ++line) {
          float(&sums)[4] = state.sums[kFirst + line][s];
          put_four(to_row + line * kTileColumns, sums);
          FRAMELANE_UNROLL
          for (int c = 0; c < 4; ++c) sums[c] = 0;
        }
      }
    }
  }

  FRAMELANE_HD static void put_four(float* to, const float (&four)[4]) {
    store(reinterpret_cast<std::uint8_t*>(to), float4{four[0], four[1], four[2], four[3]});
  }

  /// A thread makes sample x of kAtOnce lines, which have the same weights: of rows of luma, or of
  /// both lines of chroma in half as many rows.
  template <int kGroup, int kCount>
  FRAMELANE_HD void go_across(TileThread thread, const State& state, const float* lines,
                              float* shared) const {
    constexpr int kRows = kAtOnce / kCount;
    const TileGroup& group = groups[kGroup];
    const Rows& rows = state.rows[kGroup];
    const int tile_x = static_cast<int>(thread.x) * group.columns;
    const int width = at_most(group.columns, group.across.samples - tile_x);
    const int begin = at_least(rows.done, rows.begin);
    const int end = at_most(rows.now, rows.end);
    if (width <= 0 || begin >= end) return;
    // Where a tile is narrow, a part of the warps has other rows.
    const int log2_warps = group.log2_columns - 5;
    const int warp = static_cast<int>(thread.thread) / kWarp;
    const int first_y = begin + (warp >> log2_warps) * kRows;
    const int first_x = static_cast<int>(thread.thread) & ((kWarp << log2_warps) - 1);
    for (int in_tile = first_x; in_tile / kWarp * kWarp < width; in_tile += kBlockThreads) {
      const bool is_inside = in_tile < width;
      const int x = tile_x + at_most(in_tile, width - 1);
      const float* const column = lines + (group.across.first[x] & ~3) - state.column;
      for (int y = first_y; y < end; y += (kWarps >> log2_warps) * kRows) {
        const int count = (end - y) * kCount;
        float values[kAtOnce];
        filter(group, column + (y - rows.done) * kCount * kTileColumns, x, count, values);
        bool doubts[kAtOnce], any = false;
        FRAMELANE_UNROLL
        for (int i = 0; i < kAtOnce; ++i) {
          doubts[i] = give_code(thread, group, kGroup + i % kCount, x, y + i / kCount, values[i],
                                is_inside && i < count);
          any = any || doubts[i];
        }
#ifdef __CUDA_ARCH__
        if (!__any_sync(0xFFFFFFFF, any)) continue;
#endif
        FRAMELANE_UNROLL
        for (int i = 0; i < kAtOnce; ++i) {
          doubts_in(shared).lists[thread.thread / kWarp].add(
              thread.thread, {kGroup + i % kCount, x, y + i / kCount}, doubts[i]);
        }
      }
    }
  }

  /// Sample x of `count` lines, but for those beyond kAtOnce. `samples` are its first ones.
  FRAMELANE_HD static void filter(const TileGroup& group, const float* samples, int x, int count,
                                  float (&values)[kAtOnce]) {
    const float* weights = group.across.weights + 4 * static_cast<std::ptrdiff_t>(x);
    float sums[kAtOnce][4] = {};
    for (int q = 0; q < group.across.quads; ++q) {
      const float4 weight = four_at(weights);
      FRAMELANE_UNROLL
      for (int i = 0; i < kAtOnce; ++i) {
        const float4 sample = four_at(samples + (i < count ? i : 0) * kTileColumns);
        sums[i][0] += weight.x * sample.x;
        sums[i][1] += weight.y * sample.y;
        sums[i][2] += weight.z * sample.z;
        sums[i][3] += weight.w * sample.w;
      }
      samples += 4;
      weights += 4 * group.across.samples;
    }
    FRAMELANE_UNROLL
    for (int i = 0; i < kAtOnce; ++i) {
      values[i] = (sums[i][0] + sums[i][1]) + (sums[i][2] + sums[i][3]);
    }
  }

  /// Writes a line's value as a sample of the target. Returns whether it is in doubt.
  FRAMELANE_HD bool give_code(TileThread thread, const TileGroup& group, int line, int x, int y,
                              float value, bool is_inside) const {
    const TileOutput& output = outputs[line];
    value = output.offset + output.factor * value;
    // It is not below the true value: less than half is code 0.
    value = fminf(fmaxf(value, 0.5F), 255.5F);
    const int code = static_cast<int>(value);
    if (is_inside) put(thread, group, output.channel, x, y, code);
    return is_inside && value - static_cast<float>(code) < output.window;
  }

  FRAMELANE_HD void put(TileThread thread, const TileGroup& group, int channel, int x, int y,
                        int code) const {
    const Samples2d<std::uint8_t>& to = frames[thread.z].to[channel];
    std::uint8_t* const row = row_at(to.data, group.place.y + y, static_cast<int>(to.pitch));
    row[(group.place.x + x) * to.step] = static_cast<std::uint8_t>(code);
  }

  /// Decides all samples of the tile.
  template <int kGroup, int kCount>
  FRAMELANE_HD void decide_all(TileThread thread, const State& state) const {
    const TileGroup& group = groups[kGroup];
    const Rows& rows = state.rows[kGroup];
    const int tile_x = static_cast<int>(thread.x) * group.columns;
    const int width = at_most(group.columns, group.across.samples - tile_x);
    for (int y = rows.begin; y < rows.end; ++y) {
      for (int i = static_cast<int>(thread.thread) / kWarp; i < width * kCount; i += kWarps) {
        decide(thread, {kGroup + i / width, tile_x + i % width, y});
      }
    }
  }

  FRAMELANE_HD void decide(TileThread thread, Doubt doubt) const {
    const TileGroup& group = groups[doubt.line == 0 ? 0 : 1];
    const int channel = outputs[doubt.line].channel;
    const int code = decided_code(source, frames[thread.z], group.exact, exact[channel], channel,
                                  doubt.x, doubt.y);
    if (thread.thread % kWarp == 0) put(thread, group, channel, doubt.x, doubt.y, code);
  }
};

}  // namespace framelane::cuda
