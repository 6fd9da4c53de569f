#pragma once

extern "C" {
#include <libavutil/buffer.h>
}

#include <utility>

namespace framelane {

/// One reference to an AVBufferRef; copying takes another reference.
class BufferRef {
 public:
  BufferRef() = default;
  /// Takes over `ref`.
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
  /// Gives the reference away, for FFmpeg to own.
  AVBufferRef* release() { return std::exchange(ref_, nullptr); }

 private:
  explicit BufferRef(AVBufferRef* ref) : ref_(ref) {}
  AVBufferRef* ref_ = nullptr;
};

}  // namespace framelane
