#pragma once

#include <cstring>

#include "kernels/cuda/arithmetic.cuh"
#include "kernels/cuda/scale.cuh"
#include "kernels/cuda/scale_source.cuh"
#include "kernels/cuda/tile.hpp"
#include "kernels/cuda/tile_tables.hpp"

// Pictures that become smaller. A block makes a tile of the target. It goes down the source's rows
// once; a thread has four columns. Each row is added, with a weight, to as many of the target's
// rows as it is part of (`slots`, at most 4 or 6). What is complete goes to shared memory, where
// threads filter it across.

namespace framelane::cuda {

inline constexpr int kTileColumns = 4 * static_cast<int>(kBlockThreads);
/// Rows of the source in a turn.
inline constexpr int kTurnRows = 8;
/// How many rows ahead a thread starts to read.
inline constexpr int kAhead = 4;
static_assert(kTurnRows % kAhead == 0);

FRAMELANE_HD float4 four_at(const float* at) {
  return load<float4>(reinterpret_cast<const std::uint8_t*>(at));
}

/// Weights across: for each sample of the target those of 4 * `quads` samples of the source, from
/// first[x] rounded down to a multiple of 4. Four for each sample lie together.
struct TileAcross {
  const std::int32_t* first;
  const float* weights;
  int quads, samples;
};

/// Weights down: TileDownTable's rows.
struct TileDown {
  const std::int32_t* first;  // for each row of the target: it has no part of earlier rows
  const std::int32_t* last;   // in rising order
  const TileDownTable::Row* rows;
};

/// One grid of the target: luma, or both of chroma.
struct TileGroup {
  TileAcross across;
  TileDown down;
  TermView exact;
  ScalePlace place;
  int row_begin, row_end;  // of the place, that are made
  int columns, rows;       // of a tile
  int log2_columns;        // of the next power of two, at least a warp
  int most_rows;           // that end in a turn
};

/// How a filtered line becomes a channel of the target. Values whose fraction is below `window` are
/// in doubt; 0: none is.
struct TileOutput {
  float factor, offset, window;
  int channel;
};

/// What a lane adds to the real value of a sample, which is made of kChannels from `first_channel`
/// on; see exact_sum::real_value. It waits for memory once for several rows.
template <int kChannels>
FRAMELANE_HD double real_part(const TermView& term, const SumForm& form,
                              const Samples2d<const std::uint8_t> (&from)[3], int first_channel,
                              int x, int y, int lane) {
  constexpr int kRows = 4;
  const std::int64_t* const columns = term.across.numerators + std::int64_t{x} * term.across.taps;
  const std::int64_t* const rows = term.down.numerators + std::int64_t{y} * term.down.taps;
  const int first_column = term.across.first[x];
  const int first_row = term.down.first[y];
  double factors[kChannels];
  FRAMELANE_UNROLL
  for (int c = 0; c < kChannels; ++c) {
    factors[c] = static_cast<double>(form.coefficients[first_channel + c]);
  }
  int wide = kWarp;  // lanes that are beside each other
  while (wide / 2 >= term.across.taps) wide /= 2;
  const int lanes_down = kWarp / wide;
  double sum = 0;
  for (int i = lane % wide; i < term.across.taps; i += wide) {
    const std::int64_t column = columns[i];
    double of_column = 0;
    for (int j = lane / wide; j < term.down.taps; j += kRows * lanes_down) {
      std::int64_t weights[kRows];
      int samples[kRows][kChannels];
      FRAMELANE_UNROLL
      for (int r = 0; r < kRows; ++r) {
        const int row = at_most(j + r * lanes_down, term.down.taps - 1);
        weights[r] = j + r * lanes_down == row ? rows[row] : 0;
        FRAMELANE_UNROLL
        for (int c = 0; c < kChannels; ++c) {
          samples[r][c] = from[first_channel + c].at(first_column + i, first_row + row);
        }
      }
      FRAMELANE_UNROLL
      for (int r = 0; r < kRows; ++r) {
        double colour = 0;
        FRAMELANE_UNROLL
        for (int c = 0; c < kChannels; ++c) colour += factors[c] * samples[r][c];
        of_column += static_cast<double>(weights[r]) * colour;
      }
    }
    sum += static_cast<double>(column) * of_column;
  }
  return sum;
}

/// Source knows where a thread's four columns are (place), reads a row of them (load), and makes
/// them numbers of each line (values). Lines are what is filtered: line 0 becomes luma, and lines 1
/// and 2 become chroma. With kSeparate, luma and chroma have blocks of their own.
template <typename Source, int kSlotCount>
struct ScaleTile {
  static constexpr int kSlots = kSlotCount;
  static constexpr int kLines = Source::kLines;
  static constexpr int kBlocks = kSlots > 4 ? 2 : 4;

  Source source;
  Samples2d<const std::uint8_t> from[3];  // of the part that is scaled
  Samples2d<std::uint8_t> to[3];          // of the whole target
  TileGroup groups[2];                    // luma, chroma
  TileOutput outputs[3];                  // of the lines: luma's, and the two of chroma
  SumForm exact[3];                       // of the channels
  unsigned luma_blocks;                   // in the grid's y, if chroma has blocks of its own
  int line_count;                         // that shared memory has room for

  struct Rows {
    int begin, end;  // of the tile, that are made
    int done;        // before the turn
    int now;         // in the turn
  };
  struct State {
    float sums[kLines][kSlots][4];
    typename Source::Raw raw[kAhead];
    typename Source::Place place;
    Rows rows[2];
    int row, row_end, column;  // of the source
  };

  FRAMELANE_HD void begin(TileThread thread, State& state) const {
    each_kind(thread, [&](auto lines) { begin_tile<lines.kFirst, lines.kEnd>(thread, state); });
  }
  FRAMELANE_HD int turns(const State& state) const {
    return (state.row_end - state.row + kTurnRows - 1) / kTurnRows;
  }
  FRAMELANE_HD void fill(TileThread thread, State& state, float* shared) const {
    each_kind(thread,
              [&](auto lines) { go_down<lines.kFirst, lines.kEnd>(thread, state, shared); });
  }
  FRAMELANE_HD void use(TileThread thread, State& state, float* shared) const {
    each_kind(thread, [&](auto lines) {
      std::uint32_t* const doubts = doubts_in(shared);
      if constexpr (lines.kFirst == 0) go_across<0, 1>(thread, state, shared, doubts);
      if constexpr (lines.kEnd > 1) {
        const int skipped = lines.kFirst == 0 ? groups[0].most_rows : 0;
        go_across<1, 2>(thread, state, shared + skipped * kTileColumns,
                        doubts + (lines.kFirst == 0 ? luma_words() : 0));
      }
    });
  }
  FRAMELANE_HD void finish(TileThread thread, State& state, float* shared) const {
    each_kind(thread, [&](auto lines) {
      std::uint32_t* const doubts = doubts_in(shared);
      if constexpr (lines.kFirst == 0) decide<0, 1>(thread, state, doubts);
      if constexpr (lines.kEnd > 1) {
        decide<1, 2>(thread, state, doubts + (lines.kFirst == 0 ? luma_words() : 0));
      }
    });
  }

 private:
  /// Behind the lines in shared memory: for each sample of the tile a bit that says whether it is
  /// in doubt. A word is for as many of a row as a warp makes.
  FRAMELANE_HD std::uint32_t* doubts_in(float* shared) const {
    return reinterpret_cast<std::uint32_t*>(shared + line_count * kTileColumns);
  }
  FRAMELANE_HD int luma_words() const { return groups[0].rows << (groups[0].log2_columns - 5); }

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
  FRAMELANE_HD void begin_tile(TileThread thread, State& state) const {
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
    const int x = column + 4 * static_cast<int>(thread.thread);
    state.place = source.template place<kFirst>(x);
    FRAMELANE_UNROLL
    for (int i = 0; i < kAhead; ++i) {
      source.template load<kFirst, kEnd>(state.place, at_most(row + i, row_end - 1), state.raw[i]);
    }
  }

  template <int kFirst, int kEnd>
  FRAMELANE_HD void go_down(TileThread thread, State& state, float* shared) const {
    float* const to_line = shared + 4 * thread.thread;
    FRAMELANE_UNROLL
    for (int g = 0; g < 2; ++g) {
      if (g == 0 ? kFirst > 0 : kEnd == 1) continue;
      state.rows[g].done = state.rows[g].now;
    }
    FRAMELANE_NO_UNROLL
    for (int i = 0; i < kTurnRows; i += kAhead) {
      FRAMELANE_UNROLL
      for (int j = 0; j < kAhead; ++j) {
        const int row = state.row + i + j;
        if (row >= state.row_end) break;
        float values[kLines][4];
        source.template values<kFirst, kEnd>(state.raw[j], values);
        source.template load<kFirst, kEnd>(state.place, at_most(row + kAhead, state.row_end - 1),
                                           state.raw[j]);
        if constexpr (kFirst == 0) add<0, 1>(groups[0], row, values, state);
        if constexpr (kEnd > 1) add<1 - kFirst, 2>(groups[1], row, values, state);
        if constexpr (kFirst == 0) give<0, 1>(groups[0], row, state.rows[0], state, to_line);
        if constexpr (kEnd > 1) {
          const int skipped = kFirst == 0 ? groups[0].most_rows : 0;
          give<1 - kFirst, 2>(groups[1], row, state.rows[1], state,
                              to_line + skipped * kTileColumns);
        }
      }
    }
    state.row += kTurnRows;
  }

  template <int kFirst, int kCount>
  FRAMELANE_HD static void add(const TileGroup& group, int row, const float (&values)[kLines][4],
                               State& state) {
    const float* const at = group.down.rows[row].weights;
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

  /// Gives the target's rows that end with `row` to shared memory.
  template <int kFirst, int kCount>
  FRAMELANE_HD static void give(const TileGroup& group, int row, Rows& rows, State& state,
                                float* to) {
    const int end = group.down.rows[row].done;
    for (; rows.now < end; ++rows.now) {
      const int slot = rows.now % kSlots;
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

  /// A warp makes neighbouring samples of one line.
  template <int kGroup, int kCount>
  FRAMELANE_HD void go_across(TileThread thread, const State& state, const float* shared,
                              std::uint32_t* doubts) const {
    const TileGroup& group = groups[kGroup];
    const Rows& rows = state.rows[kGroup];
    const int tile_x = static_cast<int>(thread.x) * group.columns;
    const int width = at_most(group.columns, group.across.samples - tile_x);
    const int begin = at_least(rows.done, rows.begin);
    const int end = at_most(rows.now, rows.end);
    if (width <= 0 || begin >= end) return;
    const int count = (end - begin) * kCount << group.log2_columns;
    for (int i = static_cast<int>(thread.thread); i < count; i += kBlockThreads) {
      const int in_tile = i & ((1 << group.log2_columns) - 1);
      const int line = (i >> group.log2_columns) % kCount;
      const int y = begin + (i >> group.log2_columns) / kCount;
      const bool is_inside = in_tile < width;
      std::uint32_t* const word =
          doubts + (((y - rows.begin) * kCount + line) << (group.log2_columns - 5)) + in_tile / 32;
      // (On the host, which runs one thread after the other, the first lane is the first.)
      if (in_tile % kWarp == 0) *word = 0;
      if (in_tile / kWarp * kWarp >= width) continue;
      const int x = tile_x + at_most(in_tile, width - 1);
      const float* samples = shared + ((y - rows.done) * kCount + line) * kTileColumns +
                             (group.across.first[x] & ~3) - state.column;
      const float* weights = group.across.weights + 4 * static_cast<std::ptrdiff_t>(x);
      float sums[4] = {0, 0, 0, 0};
      for (int q = 0; q < group.across.quads; ++q) {
        const float4 sample = four_at(samples);
        const float4 weight = four_at(weights);
        sums[0] += weight.x * sample.x;
        sums[1] += weight.y * sample.y;
        sums[2] += weight.z * sample.z;
        sums[3] += weight.w * sample.w;
        samples += 4;
        weights += 4 * static_cast<std::ptrdiff_t>(group.across.samples);
      }
      const TileOutput& output = outputs[kGroup + line];
      float value = output.offset + output.factor * ((sums[0] + sums[1]) + (sums[2] + sums[3]));
      // It is not below the true value: less than half is code 0.
      value = value < 0.5F ? 0.5F : value > 255.5F ? 255.5F : value;
      const int code = static_cast<int>(value);
      if (is_inside) put(group, output.channel, x, y, code);
      const bool in_doubt = is_inside && value - static_cast<float>(code) < output.window;
#ifdef __CUDA_ARCH__
      const unsigned in_warp = __ballot_sync(0xFFFFFFFF, in_doubt);
      if (in_tile % kWarp == 0) *word = in_warp;
#else
      if (in_doubt) *word |= 1U << in_tile % kWarp;
#endif
    }
  }

  FRAMELANE_HD void put(const TileGroup& group, int channel, int x, int y, int code) const {
    to[channel].at(group.place.x + x, group.place.y + y) = static_cast<std::uint8_t>(code);
  }

  /// Decides what is in doubt, in one place after the other. A warp has every fourth word of them,
  /// and all of its lanes work on one sample.
  template <int kGroup, int kCount>
  FRAMELANE_HD void decide(TileThread thread, const State& state,
                           const std::uint32_t* doubts) const {
    const TileGroup& group = groups[kGroup];
    const Rows& rows = state.rows[kGroup];
    const int tile_x = static_cast<int>(thread.x) * group.columns;
    if (tile_x >= group.across.samples) return;
    constexpr int kWarps = static_cast<int>(kBlockThreads) / kWarp;
    const int words = (rows.end - rows.begin) * kCount << (group.log2_columns - 5);
    const auto decide_word = [&](int word, std::uint32_t in_doubt) {
      const int chunk = word & ((1 << (group.log2_columns - 5)) - 1);
      const int row = word >> (group.log2_columns - 5);
      for (int bit = 0; in_doubt != 0; ++bit, in_doubt >>= 1) {
        if ((in_doubt & 1) == 0) continue;
        const int x = tile_x + chunk * kWarp + bit;
        const int y = rows.begin + row / kCount;
        const int channel = outputs[kGroup + row % kCount].channel;
        put(group, channel, x, y, exactly(group.exact, channel, x, y));
      }
    };
    const int lane = static_cast<int>(thread.thread) % kWarp;
    const int warp = static_cast<int>(thread.thread) / kWarp;
    for (int first = warp; first < words; first += kWarps * kWarp) {
#ifdef __CUDA_ARCH__
      const int mine = first + lane * kWarps;
      const std::uint32_t in_doubt = mine < words ? doubts[mine] : 0;
      for (unsigned left = __ballot_sync(0xFFFFFFFF, in_doubt != 0); left != 0; left &= left - 1) {
        const int of = __ffs(static_cast<int>(left)) - 1;
        decide_word(first + of * kWarps, __shfl_sync(0xFFFFFFFF, in_doubt, of));
      }
#else
      const int mine = first + lane * kWarps;
      if (mine < words) decide_word(mine, doubts[mine]);
#endif
    }
  }

  __host__ __device__ __noinline__ int exactly(const TermView& term, int channel, int x,
                                               int y) const {
    const SumForm& form = exact[channel];
    constexpr int kChannels = Source::kSeparate ? 1 : 3;  // the others have no part in it
    const int first = Source::kSeparate ? channel : 0;
    double sum = 0;
#ifdef __CUDA_ARCH__
    const int lane = static_cast<int>(threadIdx.x % kWarp);
    sum = real_part<kChannels>(term, form, from, first, x, y, lane);
    for (int step = kWarp / 2; step > 0; step /= 2) {
      sum += __shfl_xor_sync(0xFFFFFFFF, sum, step);
    }
#else
    for (int lane = 0; lane < kWarp; ++lane) {
      sum += real_part<kChannels>(term, form, from, first, x, y, lane);
    }
#endif
    sum = sum / static_cast<double>(term.across.denominators[x]) /
          static_cast<double>(term.down.denominators[y]);
    sum = (sum + static_cast<double>(form.offset)) / static_cast<double>(form.denominator);
    return code_near(sum, &term, 1, form, x, y, ScaleReader{from});
  }
};

}  // namespace framelane::cuda
