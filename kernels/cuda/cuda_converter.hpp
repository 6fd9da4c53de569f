#pragma once

#include <driver_types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "kernels/conversion.hpp"
#include "kernels/image_view.hpp"

namespace framelane {

/// One frame to convert. The views are of device memory.
struct CudaFrame {
  ConstImageView source;
  ImageView target;
  /// kLumaValues counts in device memory (kernels/luma_histogram.hpp), to which the target's luma
  /// samples are added; null: they are not counted.
  std::uint32_t* luma_counts = nullptr;
  /// What write_constants() of the frame's converter wrote, in device memory, at a multiple of 16.
  const std::uint8_t* constants = nullptr;
};

/// A conversion prepared for the GPU, which gives the bytes of kernels/reference.hpp. Immutable:
/// any number of threads may call it at once. Owns no CUDA object.
class CudaConverter {
 public:
  /// Requires !why_unsupported(conversion) and !is_identity(conversion), which would be a copy.
  static std::unique_ptr<const CudaConverter> make(const Conversion& conversion);
  virtual ~CudaConverter() = default;

  /// Loads onto the current device the kernels that enqueue may launch, for frames whose luma is
  /// counted or is not. Otherwise CUDA loads them at the first launch. May allocate and take
  /// milliseconds.
  [[nodiscard]] virtual cudaError_t load(bool counts_luma) const = 0;

  /// Numbers that the kernels read and that are too many for their parameters; 0 bytes if there are
  /// none. Whoever calls enqueue has them in device memory.
  virtual std::size_t constant_bytes() const { return 0; }
  virtual void write_constants(std::uint8_t* /*to*/) const {}

  /// Queues the conversion of rows [row_begin, row_end) of every frame, and returns at once. The
  /// rules for rows are those of Converter::run, but a picture that is scaled needs its whole
  /// source. Luma is counted for all frames or for none. The views have the conversion's formats
  /// and size, and the memory must stay until the work is done. Any address and any pitch
  /// below 2 GiB works; planes and pitches that are aligned to 16 bytes are fastest. The stream's
  /// device must be current. After an error some of
  /// the work may not be queued.
  [[nodiscard]] virtual cudaError_t enqueue(std::span<const CudaFrame> frames, int row_begin,
                                            int row_end, cudaStream_t stream) const = 0;
  [[nodiscard]] cudaError_t enqueue(const ConstImageView& source, const ImageView& target,
                                    int row_begin, int row_end, cudaStream_t stream) const {
    const CudaFrame frame{source, target, nullptr};
    return enqueue({&frame, 1}, row_begin, row_end, stream);
  }

  /// How many frames of one enqueue share a launch at most. All have the same constants.
  virtual std::size_t frames_a_launch() const { return 1; }

  /// For logs and benchmarks: "scale-matrix", "scale-tile", "scale", "rgb-to-yuv", "remap",
  /// "rematrix", "unpack" or "general". Those between the first and the last convert frames that
  /// are not aligned in the general way.
  virtual const char* name() const = 0;

  CudaConverter(const CudaConverter&) = delete;
  CudaConverter& operator=(const CudaConverter&) = delete;

 protected:
  CudaConverter() = default;
};

}  // namespace framelane
