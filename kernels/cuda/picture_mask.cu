#include "kernels/cuda/picture_mask.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/cuda/kernel.hpp"
#include "kernels/cuda/samples.cuh"

namespace framelane {
namespace {

using namespace cuda;

constexpr int kMostBlocks = PictureMask::kMostBlocks;

/// The blocks of a pixelated shape in one channel. Their sums fit: the side of a block is at most
/// 1024 samples, as no picture is wider than 16384.
struct Blocks {
  int width, height;
  int left, top;
  int down;             ///< rows of blocks
  std::uint32_t* sums;  ///< kMostBlocks in a row

  FRAMELANE_HD std::uint32_t& sum_at(int x, int y) const {
    return sums[(y - top) / height * kMostBlocks + (x - left) / width];
  }
};

/// Adds up the samples of blocks. A thread's turn is a piece of a block's row; channels are layers.
struct SumBlocks {
  static constexpr int kPiece = 16;

  struct Part {
    Samples2d<const std::uint8_t> samples;
    Blocks blocks;
  };
  Part parts[3];

  FRAMELANE_HD void operator()(ThreadIndex thread) const {
    const auto& [samples, blocks] = parts[thread.z];
    const int pieces = (blocks.width + kPiece - 1) / kPiece;  // of one block
    const int block = static_cast<int>(thread.x) / pieces;
    const int piece = static_cast<int>(thread.x) % pieces;
    const int y = blocks.top + static_cast<int>(thread.y);
    if (block >= kMostBlocks || y >= blocks.top + blocks.down * blocks.height) return;
    const int begin = blocks.left + block * blocks.width + piece * kPiece;
    const int block_end = blocks.left + (block + 1) * blocks.width;
    int end = begin + kPiece < block_end ? begin + kPiece : block_end;
    if (end > samples.width) end = samples.width;
    if (begin >= end || y >= samples.height) return;
    std::uint32_t sum = 0;
    for (int x = begin; x < end; ++x) sum += samples.at(x, y);
    std::uint32_t& to = blocks.sum_at(begin, y);
#ifdef __CUDA_ARCH__
    atomicAdd(&to, sum);
#else
    to += sum;
#endif
  }
};

/// Writes the samples that a shape covers. A thread's turn is a sample of a run; channels are
/// layers.
struct CoverRuns {
  struct Part {
    Samples2d<std::uint8_t> samples;
    const PictureMask::Run* runs;
    int run_count;
    std::uint8_t code;
    Blocks blocks;  ///< width 0: filled with `code`
  };
  Part parts[3];

  FRAMELANE_HD static std::uint8_t mean(const Samples2d<std::uint8_t>& samples,
                                        const Blocks& blocks, int x, int y) {
    const int left = x - (x - blocks.left) % blocks.width;
    const int top = y - (y - blocks.top) % blocks.height;
    const int width = samples.width - left < blocks.width ? samples.width - left : blocks.width;
    const int height = samples.height - top < blocks.height ? samples.height - top : blocks.height;
    const auto count = static_cast<std::uint32_t>(width) * static_cast<std::uint32_t>(height);
    return static_cast<std::uint8_t>((2 * blocks.sum_at(x, y) + count) / (2 * count));
  }
  FRAMELANE_HD void operator()(ThreadIndex thread) const {
    const Part& part = parts[thread.z];
    if (static_cast<int>(thread.y) >= part.run_count) return;
    const PictureMask::Run run = part.runs[thread.y];
    const int x = run.begin + static_cast<int>(thread.x);
    if (x >= run.end) return;
    part.samples.at(x, run.row) =
        part.blocks.width == 0 ? part.code : mean(part.samples, part.blocks, x, run.row);
  }
};

}  // namespace

CudaMask::CudaMask(const PictureMask& mask) : channels_(info(mask.format()).gray ? 1 : 3) {
  std::size_t sums = 0;
  for (const PictureMask::Cover& cover : mask.covers()) {
    if (parts_.size() % channels_ == 0) sums = 0;  // the next shape
    Part part{.channel = cover.channel,
              .first_run = runs_.size(),
              .run_count = static_cast<int>(cover.runs.size()),
              .widest_run = 0,
              .code = cover.code,
              .block_width = cover.block_width,
              .block_height = cover.block_height,
              .left = cover.left,
              .top = cover.top,
              .blocks_down = 0,
              .first_sum = sums};
    for (const PictureMask::Run& run : cover.runs) {
      part.widest_run = std::max(part.widest_run, run.end - run.begin);
      runs_.push_back(run);
    }
    if (part.block_width > 0 && part.run_count > 0) {
      part.blocks_down = (cover.runs.back().row - part.top) / part.block_height + 1;
      sums += static_cast<std::size_t>(part.blocks_down) * kMostBlocks;
      sums_ = std::max(sums_, sums);
    }
    parts_.push_back(part);
  }
}

void CudaMask::write_constants(std::uint8_t* to) const {
  if (!runs_.empty()) std::memcpy(to, runs_.data(), constant_bytes());
}

cudaError_t CudaMask::enqueue(const ImageView& picture, const std::uint8_t* constants,
                              std::uint8_t* scratch, cudaStream_t stream) const {
  const auto* const runs = reinterpret_cast<const PictureMask::Run*>(constants);
  auto* const sums = reinterpret_cast<std::uint32_t*>(scratch);
  for (std::size_t i = 0; i < parts_.size(); i += channels_) {
    const cudaError_t error = enqueue_shape(&parts_[i], channels_, picture, runs, sums, stream);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

cudaError_t CudaMask::enqueue_shape(const Part* parts, std::size_t count, const ImageView& picture,
                                    const PictureMask::Run* runs, std::uint32_t* sums,
                                    cudaStream_t stream) const {
  Samples2d<std::uint8_t> samples[3];
  locate(picture, samples);
  SumBlocks sum{};
  CoverRuns cover{};
  int pieces = 0;
  int block_rows = 0;
  int columns = 0;
  int lines = 0;
  for (std::size_t k = 0; k < count; ++k) {
    const Part& part = parts[k];
    const Samples2d<std::uint8_t>& to = samples[part.channel];
    const Blocks blocks{part.block_width, part.block_height, part.left,
                        part.top,         part.blocks_down,  sums + part.first_sum};
    sum.parts[k] = {{to.data, to.pitch, to.step, to.width, to.height}, blocks};
    cover.parts[k] = {to, runs + part.first_run, part.run_count, part.code, blocks};
    pieces = std::max(pieces, (part.block_width + SumBlocks::kPiece - 1) / SumBlocks::kPiece);
    block_rows = std::max(block_rows, part.blocks_down * part.block_height);
    columns = std::max(columns, part.widest_run);
    lines = std::max(lines, part.run_count);
  }
  if (lines == 0) return cudaSuccess;
  const int layers = static_cast<int>(count);
  if (block_rows > 0) {
    if (const cudaError_t error = cudaMemsetAsync(sums, 0, scratch_bytes(), stream);
        error != cudaSuccess) {
      return error;
    }
    if (const cudaError_t error =
            launch<Residency::kAny>(pieces * kMostBlocks, block_rows, layers, stream, sum);
        error != cudaSuccess) {
      return error;
    }
  }
  constexpr int kMostLines = 32768;  // of one launch
  for (int first = 0; first < lines; first += kMostLines) {
    const int now = std::min(lines - first, kMostLines);
    if (const cudaError_t error = launch<Residency::kAny>(columns, now, layers, stream, cover);
        error != cudaSuccess) {
      return error;
    }
    for (CoverRuns::Part& part : cover.parts) {
      part.runs += now;
      part.run_count -= now;
    }
  }
  return cudaSuccess;
}

cudaError_t CudaMask::load() {
  if (const cudaError_t error = cuda::load<Residency::kAny, SumBlocks>(); error != cudaSuccess) {
    return error;
  }
  return cuda::load<Residency::kAny, CoverRuns>();
}

}  // namespace framelane
