// Apart from av_ptr.cpp, so that programs with frames and stages alone link libavutil and no more
// of FFmpeg (see bench/).
#include "pipeline/av/buffer_ref.hpp"

#include <new>

namespace framelane {

BufferRef::BufferRef(const BufferRef& other) {
  if (other.ref_ == nullptr) return;
  ref_ = av_buffer_ref(other.ref_);
  if (ref_ == nullptr) throw std::bad_alloc();
}

}  // namespace framelane
