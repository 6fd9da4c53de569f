#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/image_view.hpp"
#include "pipeline/av/buffer_ref.hpp"
#include "pipeline/frames/host_buffer.hpp"

namespace framelane {

/// A pool of equally large HostBuffers for frames, on FFmpeg's AVBufferPool: a buffer comes back by
/// itself when its last reference goes, from any thread, even after the FramePool is gone. Grows on
/// demand up to kMaxBuffers and never waits. Thread-safe.
class FramePool {
 public:
  /// A leak guard, not a working limit: the longest ring (256), decoder threads and references (32)
  /// and what an encoder with 64 threads can hold stay below it.
  static constexpr int kMaxBuffers = 512;
  /// Rows start on this many bytes: suits AVX-512 stores, FFmpeg's decoders and GPU copies.
  static constexpr int kPitchAlignment = 64;

  FramePool();
  ~FramePool();
  FramePool(const FramePool&) = delete;
  FramePool& operator=(const FramePool&) = delete;

  /// A buffer of at least `bytes`. Another size than before starts a new generation of buffers; the
  /// old ones are freed as they come back. Throws FeedError(kMemory) when the guard or the system
  /// refuses.
  BufferRef get(std::size_t bytes);
  /// True when `data` points into a buffer of this pool.
  bool owns(const std::uint8_t* data) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// An image in one pool buffer, its planes one after the other and then `extra` bytes for something
/// else that belongs to the frame, aligned as rows are.
struct PooledImage {
  ImageView image;
  BufferRef buffer;
  std::uint8_t* extra = nullptr;
};
PooledImage allocate_image(FramePool& pool, PixelFormat format, int width, int height,
                           std::size_t extra = 0);

}  // namespace framelane
