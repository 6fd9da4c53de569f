#pragma once

#include <driver_types.h>

#include <cstdint>
#include <memory>
#include <span>

#include "kernels/conversion.hpp"
#include "kernels/image_view.hpp"

namespace framelane {

/// One frame to convert: views of device memory.
struct CudaFrame {
  ConstImageView source;
  ImageView target;
  /// The kLumaValues counts, in device memory, to which those of the target's luma samples are
  /// added (kernels/luma_histogram.hpp); null: they are not counted.
  std::uint32_t* luma_counts = nullptr;
};

/// A conversion prepared for the GPU; equals kernels/reference.hpp in every
/// byte. Immutable after construction: any number of threads may enqueue at
/// once. Holds no CUDA object.
class CudaConverter {
 public:
  /// Requires !why_unsupported(conversion) and !is_identity(conversion): an
  /// identity is a copy.
  static std::unique_ptr<const CudaConverter> make(const Conversion& conversion);
  virtual ~CudaConverter() = default;

  /// Loads the kernels that enqueue may launch onto the current device, for frames whose luma is
  /// counted or for others; without it the first launch does. May allocate and take milliseconds.
  [[nodiscard]] virtual cudaError_t load(bool counts_luma) const = 0;

  /// Queues the conversion of rows [row_begin, row_end) of every frame, the
  /// same for all of them and by the rules of Converter::run; returns at once.
  /// Of all frames the luma is counted, or of none. Views match the conversion
  /// in format and size, and what they refer to lives until the stream has
  /// passed; any pitch and address works, fastest are planes and pitches
  /// aligned to 16 bytes. Many frames share launches where that helps. The
  /// current device must be the stream's. An error means that some of the work
  /// may not be queued.
  [[nodiscard]] virtual cudaError_t enqueue(std::span<const CudaFrame> frames, int row_begin,
                                            int row_end, cudaStream_t stream) const = 0;
  [[nodiscard]] cudaError_t enqueue(const ConstImageView& source, const ImageView& target,
                                    int row_begin, int row_end, cudaStream_t stream) const {
    const CudaFrame frame{source, target, nullptr};
    return enqueue({&frame, 1}, row_begin, row_end, stream);
  }

  /// "rgb-to-yuv" for the fast path (frames that are not aligned take the other
  /// all the same) or "general", for logs and benchmarks.
  virtual const char* name() const = 0;

  CudaConverter(const CudaConverter&) = delete;
  CudaConverter& operator=(const CudaConverter&) = delete;

 protected:
  CudaConverter() = default;
};

}  // namespace framelane
