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
  explicit CudaMask(const PictureMask& mask);

  /// What enqueue reads, in device memory. Such memory belongs to one CudaMask.
  std::size_t constant_bytes() const { return runs_.size() * sizeof(PictureMask::Run); }
  /// `to`: constant_bytes().
  void write_constants(std::uint8_t* to) const;
  /// What enqueue writes and reads again, in device memory, for one picture at a time.
  std::size_t scratch_bytes() const { return sums_ * sizeof(std::uint32_t); }

  /// Queues the covering of a picture of the mask's size and format. `constants`, `scratch` and the
  /// picture must stay until that is done. Blocking, threads and result: as
  /// CudaConverter::enqueue.
  [[nodiscard]] cudaError_t enqueue(const ImageView& picture, const std::uint8_t* constants,
                                    std::uint8_t* scratch, cudaStream_t stream) const;
  /// As CudaConverter::load.
  [[nodiscard]] static cudaError_t load();

 private:
  /// PictureMask::Cover, with runs_ instead of its own.
  struct Part {
    std::size_t channel;
    std::size_t first_run;
    int run_count;
    int widest_run;
    std::uint8_t code;
    int block_width, block_height;
    int left, top;
    int blocks_down;
    std::size_t first_sum;
  };
  [[nodiscard]] cudaError_t enqueue_shape(const Part* parts, std::size_t count,
                                          const ImageView& picture, const PictureMask::Run* runs,
                                          std::uint32_t* sums, cudaStream_t stream) const;

  std::size_t channels_;  ///< of the format: parts of each shape
  std::vector<Part> parts_;
  std::vector<PictureMask::Run> runs_;
  std::size_t sums_ = 0;  // for the shape that needs most
};

}  // namespace framelane
