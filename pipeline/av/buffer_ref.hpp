#pragma once

extern "C" {
#include <libavutil/buffer.h>
}

#include <utility>

namespace framelane {

/// A reference to one of FFmpeg's reference-counted buffers, or null. Copying takes another
/// reference, and throws std::bad_alloc when it cannot. References may be dropped on any thread.
class BufferRef {
 public:
  BufferRef() = default;
  /// Takes ownership of `ref`.
  static BufferRef adopt(AVBufferRef* ref) { return BufferRef(ref); }
  BufferRef(const BufferRef& other);
  BufferRef(BufferRef&& other) noexcept : ref_(std::exchange(other.ref_, nullptr)) {}
  BufferRef& operator=(BufferRef other) noexcept {
    std::swap(ref_, other.ref_);
    return *this;
  }
  ~BufferRef() { av_buffer_unref(&ref_); }

  explicit operator bool() const { return ref_ != nullptr; }
  AVBufferRef* get() const { return ref_; }
  /// Gives up ownership, for FFmpeg to take it.
  AVBufferRef* release() { return std::exchange(ref_, nullptr); }

 private:
  explicit BufferRef(AVBufferRef* ref) : ref_(ref) {}
  AVBufferRef* ref_ = nullptr;
};

}  // namespace framelane
