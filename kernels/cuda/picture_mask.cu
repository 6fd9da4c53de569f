#include "kernels/cuda/picture_mask.hpp"

#include <algorithm>
#include <climits>
#include <cstring>
#include <span>

#include "kernels/cuda/samples.cuh"
#include "kernels/cuda/tile.hpp"

namespace framelane {
namespace {

using namespace cuda;

using Run = PictureMask::Run;

/// Covers tiles; a block of threads has one each. Sums fit: the side of a block of samples is at
/// most 1024, as no picture is wider than 16384.
struct CoverTiles {
  static constexpr int kBlocks = 8;
  static constexpr int kThreads = static_cast<int>(kBlockThreads);
  static constexpr std::size_t kSharedBytes = kThreads * sizeof(std::uint32_t);

  struct State {
    CudaMask::Tile tile;
    std::uint8_t code;
  };

  Samples2d<std::uint8_t> channels[3];
  const CudaMask::Tile* tiles;
  const Run* runs;

  FRAMELANE_HD void begin(TileThread thread, State& state, float*) const {
    state.tile = tiles[thread.x];
    state.code = state.tile.code;
  }
  FRAMELANE_HD int turns(const State& state) const { return state.tile.width > 0 ? 1 : 0; }
  /// Adds up a part of the samples.
  FRAMELANE_HD void fill(TileThread thread, State& state, float* shared) const {
    constexpr int kAhead = 8;  // loads that wait for memory together
    const auto [right, bottom] = end_of(state.tile);
    const int width = right - state.tile.left;
    const int step_x = kThreads % width;
    const int step_y = kThreads / width;
    int x = state.tile.left + static_cast<int>(thread.thread) % width;
    int y = state.tile.top + static_cast<int>(thread.thread) / width;
    const Samples2d<std::uint8_t>& samples = channels[state.tile.channel];
    std::uint32_t sum = 0;
    while (y < bottom) {
      FRAMELANE_UNROLL
      for (int i = 0; i < kAhead; ++i) {
        sum += y < bottom ? samples.at(x, y) : 0u;
        x += step_x;
        y += step_y;
        if (x >= right) {
          x -= width;
          ++y;
        }
      }
    }
    reinterpret_cast<std::uint32_t*>(shared)[thread.thread] = sum;
  }
  FRAMELANE_HD void use(TileThread, State& state, float* shared) const {
    const auto* const sums = reinterpret_cast<const std::uint32_t*>(shared);
    std::uint32_t sum = 0;
    for (int i = 0; i < kThreads; ++i) sum += sums[i];
    const auto [right, bottom] = end_of(state.tile);
    const auto count = static_cast<std::uint32_t>(right - state.tile.left) *
                       static_cast<std::uint32_t>(bottom - state.tile.top);
    state.code = static_cast<std::uint8_t>((2 * sum + count) / (2 * count));
  }
  /// A warp's turn is a run.
  FRAMELANE_HD void finish(TileThread thread, State& state, float*) const {
    const int lane = static_cast<int>(thread.thread) % kWarp;
    const Samples2d<std::uint8_t>& samples = channels[state.tile.channel];
    for (int i = static_cast<int>(thread.thread) / kWarp; i < state.tile.run_count;
         i += kThreads / kWarp) {
      const Run run = runs[state.tile.first_run + i];
      for (int x = run.begin + lane; x < run.end; x += kWarp) samples.at(x, run.row) = state.code;
    }
  }

 private:
  struct End {
    int right, bottom;
  };
  /// Of the samples that lie in the picture.
  FRAMELANE_HD End end_of(const CudaMask::Tile& tile) const {
    const Samples2d<std::uint8_t>& samples = channels[tile.channel];
    const int right = tile.left + tile.width;
    const int bottom = tile.top + tile.height;
    return {right < samples.width ? right : samples.width,
            bottom < samples.height ? bottom : samples.height};
  }
};

/// Where a shape reads and writes in one channel.
struct Reach {
  std::size_t channel;
  int left = INT_MAX;
  int top = INT_MAX;
  int right = 0;
  int bottom = 0;

  void add(int x, int y, int x_end, int y_end) {
    left = std::min(left, x);
    top = std::min(top, y);
    right = std::max(right, x_end);
    bottom = std::max(bottom, y_end);
  }
  friend bool meet(const Reach& a, const Reach& b) {
    return a.channel == b.channel && a.left < b.right && b.left < a.right && a.top < b.bottom &&
           b.top < a.bottom;
  }
};

Reach reach_of(const PictureMask::Cover& cover) {
  Reach reach{.channel = cover.channel};
  for (const auto& [row, begin, end] : cover.runs) {
    if (cover.block_width == 0) {
      reach.add(begin, row, end, row + 1);
      continue;
    }
    const int top = cover.block_top(row);
    const int last = cover.block_left(end - 1);
    reach.add(cover.block_left(begin), top, last + cover.block_width, top + cover.block_height);
  }
  return reach;
}

}  // namespace

CudaMask::CudaMask(const PictureMask& mask) {
  const std::size_t channels = info(mask.format()).gray ? 1 : 3;
  std::vector<Reach> reached;  // in the present launch
  for (auto covers = mask.covers(); !covers.empty(); covers = covers.subspan(channels)) {
    const auto shape = covers.first(channels);
    std::vector<Reach> reaches;
    for (const PictureMask::Cover& cover : shape) reaches.push_back(reach_of(cover));
    const bool meets = std::ranges::any_of(reaches, [&](const Reach& a) {
      return std::ranges::any_of(reached, [&](const Reach& b) { return meet(a, b); });
    });
    if (meets) {
      launch_ends_.push_back(tiles_.size());
      reached.clear();
    }
    reached.insert(reached.end(), reaches.begin(), reaches.end());
    for (const PictureMask::Cover& cover : shape) {
      if (cover.block_width > 0) {
        add_pixelated(cover);
      } else {
        add_filled(cover);
      }
    }
  }
  launch_ends_.push_back(tiles_.size());
}

void CudaMask::add_filled(const PictureMask::Cover& cover) {
  constexpr int kMostSamples = 4096;  // of a tile, so that many blocks share the work
  int samples = kMostSamples;
  for (const Run& run : cover.runs) {
    const int more = run.end - run.begin;
    if (samples + more > kMostSamples) {
      samples = 0;
      tiles_.push_back({.channel = static_cast<int>(cover.channel),
                        .code = cover.code,
                        .first_run = static_cast<int>(runs_.size())});
    }
    samples += more;
    ++tiles_.back().run_count;
    runs_.push_back(run);
  }
}

void CudaMask::add_pixelated(const PictureMask::Cover& cover) {
  for (std::size_t i = 0; i < cover.runs.size();) {
    // The runs in one row of blocks.
    const int top = cover.block_top(cover.runs[i].row);
    std::size_t end = i;
    int left = INT_MAX;
    int right = 0;
    for (; end < cover.runs.size() && cover.runs[end].row < top + cover.block_height; ++end) {
      left = std::min(left, cover.runs[end].begin);
      right = std::max(right, cover.runs[end].end);
    }
    for (left = cover.block_left(left); left < right; left += cover.block_width) {
      const auto first_run = static_cast<int>(runs_.size());
      for (const Run& run : std::span(cover.runs).subspan(i, end - i)) {
        const int run_begin = std::max(run.begin, left);
        const int run_end = std::min(run.end, left + cover.block_width);
        if (run_begin < run_end) runs_.push_back({run.row, run_begin, run_end});
      }
      const int run_count = static_cast<int>(runs_.size()) - first_run;
      if (run_count == 0) continue;
      tiles_.push_back({.channel = static_cast<int>(cover.channel),
                        .code = 0,
                        .width = cover.block_width,
                        .height = cover.block_height,
                        .left = left,
                        .top = top,
                        .first_run = first_run,
                        .run_count = run_count});
    }
    i = end;
  }
}

void CudaMask::write_constants(std::uint8_t* to) const {
  const std::size_t tile_bytes = tiles_.size() * sizeof(Tile);
  if (tiles_.empty()) return;
  std::memcpy(to, tiles_.data(), tile_bytes);
  std::memcpy(to + tile_bytes, runs_.data(), runs_.size() * sizeof(Run));
}

cudaError_t CudaMask::enqueue(const ImageView& picture, const std::uint8_t* constants,
                              cudaStream_t stream) const {
  CoverTiles body{};
  locate(picture, body.channels);
  body.tiles = reinterpret_cast<const Tile*>(constants);
  body.runs = reinterpret_cast<const Run*>(body.tiles + tiles_.size());
  std::size_t begin = 0;
  for (const std::size_t end : launch_ends_) {
    if (begin == end) continue;  // shapes that cover nothing
    const cudaError_t error = launch_tiles(dim3(static_cast<unsigned>(end - begin)),
                                           CoverTiles::kSharedBytes, stream, body);
    if (error != cudaSuccess) return error;
    body.tiles += end - begin;
    begin = end;
  }
  return cudaSuccess;
}

cudaError_t CudaMask::load() { return load_tiles<CoverTiles>(); }

}  // namespace framelane
