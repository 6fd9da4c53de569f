// NVIDIA's Performance Primitives, to compare with: the one conversion that they share with us,
// BT.601 from BGRA to I420, and BGRA in another size. Their libraries are loaded at run time, where
// they are installed; nothing of ours needs them.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "kernels/image_view.hpp"

namespace framelane::bench {

class Npp {
 public:
  /// For the current device. Loads `file` or, with an empty name, the libraries where they are
  /// installed; nothing where there is none. They stay loaded.
  static std::optional<Npp> find(const std::string& file = {});

  /// Queues the conversion of views of device memory, BGRA and I420. Returns 0 or NPP's status:
  /// negative for an error, positive for a warning (of an odd size it leaves out the last row or
  /// column).
  int enqueue(const ConstImageView& source, const ImageView& target, cudaStream_t stream) const;
  bool resizes() const { return resize_ != nullptr; }
  /// The same for a BGRA picture of another size, by NPPI_INTER_CUBIC. Requires resizes().
  int enqueue_resize(const ConstImageView& source, const ImageView& target,
                     cudaStream_t stream) const;

 private:
  // NppStreamContext and NppiSize of NPP 12 and 13, passed by value.
  struct Context {
    cudaStream_t stream;
    int device, multiprocessors, threads_per_multiprocessor, threads_per_block;
    std::size_t shared_bytes_per_block;
    int major, minor;
    unsigned stream_flags;
    int reserved;
  };
  struct ImageSize {
    int width, height;
  };
  struct ImageRect {
    int x, y, width, height;
  };
  using BgraToI420 = int (*)(const std::uint8_t*, int, std::uint8_t**, int*, ImageSize, Context);

  using Resize = int (*)(const std::uint8_t*, int, ImageSize, ImageRect, std::uint8_t*, int,
                         ImageSize, ImageRect, int, Context);

  Npp(BgraToI420 convert, Resize resize);
  Context context_on(cudaStream_t stream) const;

  BgraToI420 convert_;
  Resize resize_;
  Context context_{};
};

}  // namespace framelane::bench
