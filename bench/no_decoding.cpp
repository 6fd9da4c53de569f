// Takes the place of pipeline/stage/cuda/av_device.cpp in programs that decode and encode nothing:
// with FFmpeg's devices they would need all of FFmpeg's libraries.
#include "pipeline/stage/cuda/av_device.hpp"

namespace framelane {

// By value, because av_device.hpp declares them so.
// NOLINTBEGIN(performance-unnecessary-value-param)
BufferRef make_decode_context(std::shared_ptr<CudaContext>, std::string&) { return {}; }
BufferRef make_encode_context(std::shared_ptr<CudaContext>, std::string&) { return {}; }
// NOLINTEND(performance-unnecessary-value-param)

}  // namespace framelane
