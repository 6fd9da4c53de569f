// Longer than 400 lines: the host, which cannot run what lanes do together, has its own way of
// making the same sums beside theirs.
#pragma once

#include "kernels/cuda/arithmetic.cuh"
#include "kernels/cuda/async_copy.cuh"
#include "kernels/cuda/matrix_lanes.cuh"
#include "kernels/cuda/matrix_tables.hpp"
#include "kernels/cuda/scale_doubt.cuh"
#include "kernels/cuda/scale_source.cuh"
#include "kernels/cuda/tile.hpp"
#include "kernels/cuda/tile_group.cuh"

// Planes whose samples are filtered each for itself, on a GPU's matrix units. A warp makes
// kMatrixRows rows of a channel of the target. It goes along the source in windows of 32 columns.
// Of each it filters the columns down, and then, as soon as a group of the target's columns has all
// that it needs, the rows across. The sums down stay in registers: the lanes have them as the
// second product needs them, because columns are counted in another order than they lie in.
//
// All sums are exact sums of whole numbers: samples, from -128 to 127, times weights of 24 bits;
// and these sums without their lowest byte times weights of 24 bits, without the products of two
// lowest bytes. MatrixTables knows what that may be wrong by.

namespace framelane::cuda {

/// One grid of the target: luma, or both of chroma.
struct MatrixGroup {
  const std::int32_t* first_rows;  // as in MatrixDownTable
  const std::uint32_t* down;
  const std::int32_t* halves;  // as in MatrixAcrossTable
  const std::uint32_t* across;
  TermView exact;
  ScalePlace place;
  MatrixOutput output;
  // For what is in doubt: weights, rounded; and how sums become values, to which 1/2 is added.
  const double* weights_across;
  const double* weights_down;
  double factor, offset;
  bool ties;                 // a sum that is nearly a tie is one
  int origin, across_words;  // of MatrixAcrossTable: its words for a group of columns
  int row_begin, row_end;    // of the place, that are made
  int first_row_group;
  int column_groups;
  int strips;  // pieces of a row, with `strip_groups` groups of columns each
  int blocks;  // of the grid
};

/// `kHalves`: halves of a sum down. `kWide`: some sums across have three halves.
template <int kHalves, bool kWide>
struct ScaleMatrix {
  static constexpr int kWarps = DoubtLists::kWarps;
  static constexpr int kBlocks = kHalves == 2 ? 4 : 3;
  static constexpr int kMostStripGroups = 16;
  /// Rows of codes in shared memory are so many bytes apart: an odd multiple of 16, so that rows
  /// are in different banks.
  static constexpr int kCodePitch = kMatrixColumns * kMostStripGroups + 16;
  static constexpr std::size_t kCodeBytes = std::size_t{kMatrixRows} * kCodePitch;
  /// What is in shared memory before the weights across of the block's strip.
  static constexpr std::size_t kFixedBytes = sizeof(DoubtLists) + kWarps * kCodeBytes;

  MatrixGroup groups[2];  // luma, chroma
  SumForm forms[3];       // of the channels
  int strip_groups;
  // How the channels lie, of luma and of chroma. Chroma has kPairs if U is in front of V.
  PlaneWay from_ways[2], to_ways[2];
  TileFrame frames[kMostFramesOfTiles];  // in the grid's y

  /// What a warp makes.
  struct State {
    int group, channel;
    int row;           // the first one, of the target
    int column_group;  // the first one
    int end_group;     // the one after the last one
    bool is_empty;     // there is nothing to be made
  };

  FRAMELANE_HD void begin(TileThread thread, State& state, float* shared) const {
    const int warp = static_cast<int>(thread.thread) / kWarp;
    if (thread.thread % kWarp == 0) doubts_in(shared).lists[warp].count = 0;
    const int block = static_cast<int>(thread.x);
    state.group = block < groups[0].blocks ? 0 : 1;
    const MatrixGroup& group = groups[state.group];
    const int in_group = block - (state.group == 0 ? 0 : groups[0].blocks);
    const int strip = in_group % group.strips;
    // Warps are one below the other; of chroma each second one has V.
    const int of_block = state.group == 0 ? kWarps : kWarps / 2;
    const int in_block = state.group == 0 ? warp : warp / 2;
    state.channel = state.group == 0 ? 0 : 1 + warp % 2;
    state.row =
        (group.first_row_group + in_group / group.strips * of_block + in_block) * kMatrixRows;
    state.column_group = strip * strip_groups;
    state.end_group = at_most(state.column_group + strip_groups, group.column_groups);
    state.is_empty = state.row >= group.row_end;
  }
  FRAMELANE_HD int turns(const State& /*state*/) const { return 1; }

  /// Codes go to shared memory, and doubts to the warp's list. (On a GPU all threads wait here for
  /// the weights across.)
  FRAMELANE_HD void fill(TileThread thread, State& state, float* shared) const {
#ifdef __CUDA_ARCH__
    make(thread, state, shared);
#else
    if (thread.thread % kWarp == 0 && !state.is_empty) make_on_host(thread, state, shared);
#endif
  }

  /// Codes go to the target, sixteen at a time.
  FRAMELANE_HD void use(TileThread thread, State& state, float* shared) const {
    if (state.is_empty) return;
    const MatrixGroup& group = groups[state.group];
    const int lane = static_cast<int>(thread.thread) % kWarp;
    const bool pairs = state.group == 1 && to_ways[1] == PlaneWay::kPairs;
    const int x_begin = state.column_group * kMatrixColumns;
    const int x_end = at_most(state.end_group * kMatrixColumns, group.place.width);
    constexpr int kAtOnce = 8;  // lanes of a row
    // Of pairs, which lie beside each other, the two warps have half of the rows each.
    const int begin = pairs && state.channel == 2 ? kMatrixRows / 2 : 0;
    const int end = pairs && state.channel == 1 ? kMatrixRows / 2 : kMatrixRows;
    const std::uint8_t* const codes =
        codes_in(shared, static_cast<int>(thread.thread) / kWarp - (pairs ? state.channel - 1 : 0));
    FRAMELANE_NO_UNROLL
    for (int row = begin + lane / kAtOnce; row < end; row += kWarp / kAtOnce) {
      const int y = state.row + row;
      if (y < group.row_begin || y >= group.row_end) continue;
      FRAMELANE_NO_UNROLL
      for (int x = x_begin + 16 * (lane % kAtOnce); x < x_end; x += 16 * kAtOnce) {
        const std::uint8_t* const from = codes + row * kCodePitch + (x - x_begin);
        const int count = at_most(x_end - x, 16);
        if (pairs) {
          put_pairs(place_of(thread, group, 1, x, y), load<uint4>(from),
                    load<uint4>(from + kCodeBytes), count);
        } else {
          put_codes(thread, state, place_of(thread, group, state.channel, x, y), load<uint4>(from),
                    count);
        }
      }
    }
  }

  FRAMELANE_HD void finish(TileThread thread, State& state, float* shared) const {
#ifndef __CUDA_ARCH__
    if (thread.thread % kWarp != 0) return;  // which makes the work of its warp
#endif
    const DoubtLists& doubts = doubts_in(shared);
    if (doubts.are_full()) {
      if (!state.is_empty) decide_all(thread, state);
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
  FRAMELANE_HD static std::uint8_t* codes_in(float* shared, int warp) {
    return reinterpret_cast<std::uint8_t*>(shared) + sizeof(DoubtLists) + warp * kCodeBytes;
  }

#ifdef __CUDA_ARCH__
  __device__ __forceinline__ void make(TileThread thread, const State& state, float* shared) const {
    const MatrixGroup& group = groups[state.group];
    const int lane = static_cast<int>(thread.thread % kWarp);
    // (What warps load that make nothing does not matter.)
    const int rows = at_most(state.row, group.row_end - 1) / kMatrixRows;
    copy_weights(thread, state, shared);
    std::uint32_t down[3][2 * kHalves];
    FRAMELANE_UNROLL
    for (int i = 0; i < 3 * kHalves; ++i) {
      const auto two =
          load_words<uint2>(group.down + (rows * 3 * kHalves + i) * 2 * kMatrixLanes, lane);
      down[i % 3][i / 3 * 2] = two.x;
      down[i % 3][i / 3 * 2 + 1] = two.y;
    }
    // Lane i has the halves of group i of the strip.
    const int halves = group.halves[at_most(state.column_group + lane, state.end_group - 1)];
    const auto halves_of = [halves](int i) { return __shfl_sync(0xFFFFFFFF, halves, i); };
    const int count = state.end_group - state.column_group;
    const int last_window = halves_of(count - 1) >> 2;
    int next_halves = halves_of(0);
    const bool before = (next_halves & 2) == 0 || (next_halves & 1) != 0;
    int window = at_least((next_halves >> 2) - (before ? 1 : 0), 0);
    const Samples2d<const std::uint8_t>& plane =
        frames[thread.y].from[from_ways[state.group] == PlaneWay::kPairs ? 1 : state.channel];
    const MatrixColumns<kHalves> columns{
        plane, group.first_rows[rows], group.origin, from_ways[state.group], state.channel, lane};
    uint2 raw[4 * kHalves];
    columns.load(window, raw);
    // Four numbers for the compiler, which would else copy one to four registers for each product.
    std::int32_t offsets[4];
    FRAMELANE_UNROLL
    for (int c = 0; c < 4; ++c) offsets[c] = __shfl_sync(0xFFFFFFFF, group.output.offset, c);
    wait_for_copies<0>();
    __syncthreads();
    if (state.is_empty) return;
    MatrixSums sums{};
    int next = 0;  // group of the strip
    for (;; ++window) {
      std::uint32_t right[4][kHalves];
      FRAMELANE_UNROLL
      for (int h = 0; h < kHalves; ++h) columns.transpose(&raw[4 * h], right, h);
      if (window < last_window) columns.load(window + 1, raw);
      FRAMELANE_UNROLL
      for (int byte = 0; byte < 3; ++byte) {
        FRAMELANE_UNROLL
        for (int i = 0; i < 2; ++i) {
          if (kWide) sums.before[byte][i] = sums.window[byte][i];
          sums.straddle[byte][i] = sums.window[byte][2 + i];
        }
      }
      add_down(down, right, sums);
      while (next_halves >> 2 == window) {
        add_across(thread, state, next, next_halves, offsets, sums, shared);
        if (++next == count) return;
        next_halves = halves_of(next);
      }
    }
  }

  /// Begins to copy the weights across of the strip.
  __device__ __forceinline__ void copy_weights(TileThread thread, const State& state,
                                               float* shared) const {
    const MatrixGroup& group = groups[state.group];
    const auto* const from = reinterpret_cast<const std::uint8_t*>(
        group.across + state.column_group * group.across_words);
    std::uint8_t* const to = reinterpret_cast<std::uint8_t*>(shared) + kFixedBytes;
    const int end = (state.end_group - state.column_group) * group.across_words * 4;
    for (int i = 16 * static_cast<int>(thread.thread); i < end; i += 16 * kWarp * kWarps) {
      copy_async<16>(to + i, from + i);
    }
    end_copies();
  }

  /// Makes group `made` of the strip.
  __device__ __forceinline__ void add_across(TileThread thread, const State& state, int made,
                                             int halves, const std::int32_t (&offsets)[4],
                                             const MatrixSums& sums, float* shared) const {
    using Words = std::uint32_t[2];
    const MatrixGroup& group = groups[state.group];
    const MatrixOutput& output = group.output;
    const int lane = static_cast<int>(thread.thread % kWarp);
    const std::uint32_t* const table = reinterpret_cast<const std::uint32_t*>(shared) +
                                       kFixedBytes / 4 + made * group.across_words;
    const auto low = load_words<uint4>(table, lane);
    const auto high = load_words<uint2>(table + 4 * kMatrixLanes, lane);
    MatrixProducts products{{}, {offsets[0], offsets[1], offsets[2], offsets[3]}, {}, {}};
    const Words w0{low.x, low.y};
    const Words w1{low.z, low.w};
    const Words w2{high.x, high.y};
    const bool straddles = (halves & 2) == 0;
    if (straddles) {
      multiply(sums.straddle, w0, w1, w2, products);
    } else {
      multiply(sums.window, w0, w1, w2, products);
    }
    if (kWide && (halves & 1) != 0) {
      const auto words = load_words<uint4>(table + 6 * kMatrixLanes, lane);
      if (straddles) {
        multiply(sums.before, words.x, words.y, words.z, products);
      } else {
        const std::uint32_t first[3][2] = {{sums.straddle[0][0], sums.straddle[0][1]},
                                           {sums.straddle[1][0], sums.straddle[1][1]},
                                           {sums.straddle[2][0], sums.straddle[2][1]}};
        multiply(first, words.x, words.y, words.z, products);
      }
    }
    std::int32_t values[4];
    bool any = false;
    FRAMELANE_UNROLL
    for (int c = 0; c < 4; ++c) {
      values[c] =
          value_of(products.by_8[c], products.by_16[c], products.by_24[c], products.by_32[c]);
      any = any || is_doubtful(output, values[c]);
    }
    const int shift = output.shift;
    const std::uint32_t codes =
        saturated(values[0] >> shift, values[1] >> shift, values[2] >> shift, values[3] >> shift);
    const int x = made * kMatrixColumns + 2 * (lane % 4);
    std::uint8_t* const to =
        codes_in(shared, static_cast<int>(thread.thread) / kWarp) + lane / 4 * kCodePitch + x;
    store(to, static_cast<std::uint16_t>(codes));
    store(to + 8 * kCodePitch, static_cast<std::uint16_t>(codes >> 16));
    if (!__any_sync(0xFFFFFFFF, any)) return;
    FRAMELANE_UNROLL
    for (int c = 0; c < 4; ++c) {
      const int column = state.column_group * kMatrixColumns + x + c % 2;
      const int row = state.row + lane / 4 + c / 2 * 8;
      note(thread, shared, Doubt{state.channel, column, row},
           is_doubtful(output, values[c]) && is_made(group, column, row));
    }
  }
#else
  /// Sums of the columns of one half, without their lowest bytes.
  using HalfSums = std::int32_t[kMatrixRows][kMatrixHalf];

  /// The same sums, one after the other.
  void make_on_host(TileThread thread, const State& state, float* shared) const {
    const MatrixGroup& group = groups[state.group];
    HalfSums sums[3] = {};
    int made = -4;
    for (int g = state.column_group; g < state.end_group; ++g) {
      const int last = group.halves[g] >> 1;
      for (int half = at_least(made + 1, last - 2); half <= last; ++half) {
        make_half_on_host(thread, state, half, sums[(half + 3) % 3]);
      }
      made = last;
      make_group_on_host(thread, state, g, sums, shared);
    }
  }

  void make_half_on_host(TileThread thread, const State& state, int half, HalfSums& sums) const {
    const MatrixGroup& group = groups[state.group];
    const int rows = state.row / kMatrixRows;
    const std::uint32_t* const down = group.down + rows * kHalves * 3 * kMatrixLanes * 2;
    const Samples2d<const std::uint8_t>& plane = frames[thread.y].from[state.channel];
    for (int r = 0; r < kMatrixRows; ++r) {
      std::uint32_t of_row[kMatrixHalf] = {};
      for (int k = 0; k < kHalves * kMatrixHalf; ++k) {
        const std::int32_t weight = MatrixDownTable::weight(down, r, k);
        for (int c = 0; c < kMatrixHalf && weight != 0; ++c) {
          const int column = half * kMatrixHalf + c - group.origin;
          of_row[c] +=
              static_cast<std::uint32_t>(weight) *
              static_cast<std::uint32_t>(plane.at(at_least(at_most(column, plane.width - 1), 0),
                                                  group.first_rows[rows] + k) -
                                         128);
        }
      }
      for (int c = 0; c < kMatrixHalf; ++c) sums[r][c] = static_cast<std::int32_t>(of_row[c]) >> 8;
    }
  }

  void make_group_on_host(TileThread thread, const State& state, int g, const HalfSums (&sums)[3],
                          float* shared) const {
    const MatrixGroup& group = groups[state.group];
    const std::uint32_t* const across = group.across + g * group.across_words;
    std::uint8_t* const codes = codes_in(shared, static_cast<int>(thread.thread) / kWarp);
    for (int c = 0; c < kMatrixColumns; ++c) {
      std::int32_t parts[kMatrixRows][4] = {};  // by 8, 16, 24 and 32 bits
      for (std::int32_t(&of_row)[4] : parts) of_row[1] = group.output.offset;
      for (int i = 0; i < ((group.halves[g] & 1) + 2) * kMatrixHalf; ++i) {
        const int half = i / kMatrixHalf;
        const std::int32_t weight = MatrixAcrossTable::weight(across, c, half, i % kMatrixHalf);
        if (weight == 0) continue;
        const auto w0 = static_cast<std::int8_t>(weight);
        const auto w1 = static_cast<std::int8_t>((weight - w0) >> 8);
        const std::int32_t of_weight[3] = {w0, w1, (weight - w0 - w1 * 256) >> 16};
        const int at = (group.halves[g] >> 1) + (half == 2 ? -2 : half - 1);
        for (int r = 0; r < kMatrixRows; ++r) {
          const std::int32_t sum = sums[(at + 3) % 3][r][i % kMatrixHalf];
          const std::int32_t of_sum[3] = {sum & 0xFF, sum >> 8 & 0xFF, sum >> 16};
          for (int j = 1; j < 9; ++j) {
            parts[r][j / 3 + j % 3 - 1] += of_sum[j / 3] * of_weight[j % 3];
          }
        }
      }
      for (int r = 0; r < kMatrixRows; ++r) {
        const std::int32_t value = value_of(parts[r][0], parts[r][1], parts[r][2], parts[r][3]);
        codes[r * kCodePitch + (g - state.column_group) * kMatrixColumns + c] =
            static_cast<std::uint8_t>(at_most(at_least(value >> group.output.shift, 0), 255));
        const Doubt doubt{state.channel, g * kMatrixColumns + c, state.row + r};
        note(thread, shared, doubt,
             is_doubtful(group.output, value) && is_made(group, doubt.x, doubt.y));
      }
    }
  }
#endif

  /// The whole of the parts of a sum that are multiples of 2^8, 2^16, 2^24 and 2^32, in units of
  /// 2^16. It wraps around in between, but not in the end.
  FRAMELANE_HD static std::int32_t value_of(std::int32_t by_8, std::int32_t by_16,
                                            std::int32_t by_24, std::int32_t by_32) {
    return static_cast<std::int32_t>(
        static_cast<std::uint32_t>(by_8 >> 8) + static_cast<std::uint32_t>(by_16) +
        (static_cast<std::uint32_t>(by_24) << 8) + (static_cast<std::uint32_t>(by_32) << 16));
  }
  FRAMELANE_HD static bool is_doubtful(const MatrixOutput& output, std::int32_t value) {
    return (value & ((1 << output.shift) - 1)) < output.window;
  }
  FRAMELANE_HD static bool is_made(const MatrixGroup& group, int x, int y) {
    return x < group.place.width && y >= group.row_begin && y < group.row_end;
  }

  /// Puts the doubts of a warp's lanes in the warp's list.
  FRAMELANE_HD static void note(TileThread thread, float* shared, Doubt doubt, bool is_doubt) {
    doubts_in(shared).lists[thread.thread / kWarp].add(thread.thread, doubt, is_doubt);
  }

  FRAMELANE_HD std::uint8_t* place_of(TileThread thread, const MatrixGroup& group, int channel,
                                      int x, int y) const {
    const Samples2d<std::uint8_t>& to = frames[thread.y].to[channel];
    return row_at(to.data, group.place.y + y, static_cast<int>(to.pitch)) +
           (group.place.x + x) * to.step;
  }

  /// The first `count` of sixteen codes.
  FRAMELANE_HD void put_codes(TileThread thread, const State& state, std::uint8_t* to,
                              const uint4& codes, int count) const {
    if (count == 16 && to_ways[state.group] == PlaneWay::kFour) {
      put(to, codes);
      return;
    }
    const int step = frames[thread.y].to[state.channel].step;
    FRAMELANE_NO_UNROLL
    for (int c = 0; c < count; ++c) to[c * step] = code_of(codes, c);
  }

  /// The first `count` of sixteen codes of U and of V.
  FRAMELANE_HD static void put_pairs(std::uint8_t* to, const uint4& u, const uint4& v, int count) {
    if (count == 16) {
      put(to, uint4{bytes_at<0x5140>(u.x, v.x), bytes_at<0x7362>(u.x, v.x),
                    bytes_at<0x5140>(u.y, v.y), bytes_at<0x7362>(u.y, v.y)});
      put(to + 16, uint4{bytes_at<0x5140>(u.z, v.z), bytes_at<0x7362>(u.z, v.z),
                         bytes_at<0x5140>(u.w, v.w), bytes_at<0x7362>(u.w, v.w)});
      return;
    }
    FRAMELANE_NO_UNROLL
    for (int c = 0; c < count; ++c) {
      to[2 * c] = code_of(u, c);
      to[2 * c + 1] = code_of(v, c);
    }
  }

  /// To a place that is aligned to four bytes, and often to sixteen.
  FRAMELANE_HD static void put(std::uint8_t* to, const uint4& words) {
    if (reinterpret_cast<std::uintptr_t>(to) % 16 == 0) {
      store(to, words);
      return;
    }
    store(to, words.x);
    store(to + 4, words.y);
    store(to + 8, words.z);
    store(to + 12, words.w);
  }
  FRAMELANE_HD static std::uint8_t code_of(const uint4& codes, int i) {
    const std::uint32_t word = i < 8 ? (i < 4 ? codes.x : codes.y) : (i < 12 ? codes.z : codes.w);
    return static_cast<std::uint8_t>(word >> (8 * (i % 4)));
  }

  /// Decides all samples of the warp.
  FRAMELANE_HD void decide_all(TileThread thread, const State& state) const {
    const MatrixGroup& group = groups[state.group];
    const int begin = at_least(state.row, group.row_begin);
    const int end = at_most(state.row + kMatrixRows, group.row_end);
    const int x_begin = state.column_group * kMatrixColumns;
    const int x_end = at_most(state.end_group * kMatrixColumns, group.place.width);
    for (int y = begin; y < end; ++y) {
      for (int x = x_begin; x < x_end; ++x) decide(thread, {state.channel, x, y});
    }
  }

  /// All lanes of a warp make one sample, each a part of the sum.
  FRAMELANE_HD void decide(TileThread thread, Doubt doubt) const {
    const MatrixGroup& group = groups[doubt.line == 0 ? 0 : 1];
#ifdef __CUDA_ARCH__
    double value = sum_of_lane(thread, group, doubt, static_cast<int>(thread.thread % kWarp));
    for (int step = kWarp / 2; step > 0; step /= 2) {
      value += __shfl_xor_sync(0xFFFFFFFF, value, step);
    }
#else
    double value = 0;
    for (int lane = 0; lane < kWarp; ++lane) value += sum_of_lane(thread, group, doubt, lane);
#endif
    constexpr double kDoubt = 1e-8;  // as in code_near()
    value = group.factor * value + group.offset;
    value = value < 0 ? 0 : value > 255.5 ? 255.5 : value;
    int code = static_cast<int>(value + kDoubt);
    if (value - kDoubt < code && code > 0 && !group.ties) {
      code = whole_code(frames[thread.y], group.exact, forms[doubt.line], doubt.x, doubt.y);
    }
    if (thread.thread % kWarp == 0) {
      *place_of(thread, group, doubt.line, doubt.x, doubt.y) = static_cast<std::uint8_t>(code);
    }
  }

  FRAMELANE_HD double sum_of_lane(TileThread thread, const MatrixGroup& group, Doubt doubt,
                                  int lane) const {
    const AxisView& across = group.exact.across;
    const AxisView& down = group.exact.down;
    const Samples2d<const std::uint8_t>& from = frames[thread.y].from[doubt.line];
    const int first_column = across.first[doubt.x];
    const int first_row = down.first[doubt.y];
    double sum = 0;
    FRAMELANE_NO_UNROLL
    for (int i = lane; i < across.taps * down.taps; i += kWarp) {
      const int row = i / across.taps;
      const int column = i - row * across.taps;
      sum += group.weights_across[doubt.x * across.taps + column] *
             group.weights_down[doubt.y * down.taps + row] *
             from.at(first_column + column, first_row + row);
    }
    return sum;
  }

  /// Not inline: it is hardly ever needed.
  __host__ __device__ __noinline__ static int whole_code(const TileFrame& frame,
                                                         const TermView& term, const SumForm& form,
                                                         int x, int y) {
    return whole_number_code(&term, 1, form, x, y, ScaleReader{frame.from}, WarpTeam{});
  }
};

}  // namespace framelane::cuda
