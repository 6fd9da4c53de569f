#include "pipeline/av/av_ptr.hpp"

#include <new>

namespace framelane {
namespace {

template <typename T>
T* non_null(T* pointer) {
  if (pointer == nullptr) throw std::bad_alloc();
  return pointer;
}

}  // namespace

FramePtr make_frame() { return FramePtr(non_null(av_frame_alloc())); }
PacketPtr make_packet() { return PacketPtr(non_null(av_packet_alloc())); }

CodecParametersPtr copy_parameters(const AVCodecParameters& from) {
  CodecParametersPtr copy(non_null(avcodec_parameters_alloc()));
  if (avcodec_parameters_copy(copy.get(), &from) < 0) throw std::bad_alloc();
  return copy;
}

}  // namespace framelane
