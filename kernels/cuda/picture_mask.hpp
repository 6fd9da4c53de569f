#pragma once

#include <driver_types.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/picture_mask.hpp"

namespace framelane {

/// Covers pictures in device memory: the same bytes as PictureMask::apply. Does not own device
/// memory.
class CudaMask {
 public:
  /// What one block of threads covers: in one channel a block of a pixelated shape, or some rows of
  /// a filled one.
  struct Tile {
    int channel = 0;
    std::uint8_t code = 0;  ///< of what is filled
    int width = 0;          ///< of the samples whose mean is shown; 0: filled
    int height = 0;
    int left = 0;
    int top = 0;
    int first_run = 0;
    int run_count = 0;
  };

  explicit CudaMask(const PictureMask& mask);

  /// What enqueue reads, in device memory. Such memory belongs to one CudaMask.
  std::size_t constant_bytes() const {
    return tiles_.size() * sizeof(Tile) + runs_.size() * sizeof(PictureMask::Run);
  }
  /// `to`: constant_bytes().
  void write_constants(std::uint8_t* to) const;

  /// Queues the covering of a picture of the mask's size and format, in one launch, and one more
  /// for each shape that may need what those before it have left. `constants` and the picture must
  /// stay until that is done. Blocking, threads and result: as CudaConverter::enqueue.
  [[nodiscard]] cudaError_t enqueue(const ImageView& picture, const std::uint8_t* constants,
                                    cudaStream_t stream) const;
  /// As CudaConverter::load.
  [[nodiscard]] static cudaError_t load();

 private:
  void add_filled(const PictureMask::Cover& cover);
  void add_pixelated(const PictureMask::Cover& cover);

  std::vector<Tile> tiles_;
  std::vector<PictureMask::Run> runs_;
  std::vector<std::size_t> launch_ends_;  // in tiles_
};

}  // namespace framelane
