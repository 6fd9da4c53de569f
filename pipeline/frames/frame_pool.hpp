#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/image_view.hpp"
#include "pipeline/av/buffer_ref.hpp"
#include "pipeline/frames/host_buffer.hpp"

namespace framelane {

/// A pool of HostBuffers of one size for frames, on FFmpeg's AVBufferPool. A buffer returns to the
/// pool when its last reference goes, on any thread; this may be after the FramePool was destroyed.
/// The pool grows on demand up to kMaxBuffers and never waits for a buffer. Thread-safe.
class FramePool {
 public:
  /// A guard against leaks, not a working limit: the longest ring (256), the decoder's threads and
  /// references (32) and what an encoder with 64 threads holds stay below it together.
  static constexpr int kMaxBuffers = 512;
  /// Rows start at multiples of so many bytes, which suits AVX-512 stores, FFmpeg's decoders and
  /// copies to a GPU.
  static constexpr int kPitchAlignment = 64;

  FramePool();
  ~FramePool();
  FramePool(const FramePool&) = delete;
  FramePool& operator=(const FramePool&) = delete;

  /// A buffer of at least `bytes`. A larger size than before, or one below half of it, starts a new
  /// generation of buffers; old ones are freed as they return. Throws FeedError(kMemory) if there
  /// are kMaxBuffers already, or no memory.
  BufferRef get(std::size_t bytes);
  /// True if `data` points into a buffer of this pool.
  bool owns(const std::uint8_t* data) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// An image in one buffer of a pool: its planes one after the other, then room for other
/// data of the frame, aligned as rows are.
struct PooledImage {
  ImageView image;
  BufferRef buffer;
  std::uint8_t* side_data = nullptr;  ///< the room; null if none was asked for
};
PooledImage allocate_image(FramePool& pool, PixelFormat format, int width, int height,
                           std::size_t side_data_bytes = 0);
/// The same image in a buffer of the pool.
PooledImage copy_into(FramePool& pool, const ConstImageView& image);

}  // namespace framelane
