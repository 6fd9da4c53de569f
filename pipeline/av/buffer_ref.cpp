// By itself, so that frames and stages need no more of FFmpeg than libavutil (see bench/).
#include <new>

#include "pipeline/av/buffer_ref.hpp"

namespace framelane {

BufferRef::BufferRef(const BufferRef& other) {
  if (other.ref_ == nullptr) return;
  ref_ = av_buffer_ref(other.ref_);
  if (ref_ == nullptr) throw std::bad_alloc();
}

}  // namespace framelane
