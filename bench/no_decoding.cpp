// Takes the place of pipeline/stage/cuda/decode_context.cpp in programs that decode nothing: with
// FFmpeg's devices they would need all of FFmpeg's libraries.
#include "pipeline/stage/cuda/decode_context.hpp"

namespace framelane {

// By value, because decode_context.hpp declares it so.
// NOLINTNEXTLINE(performance-unnecessary-value-param)
BufferRef make_decode_context(std::shared_ptr<CudaContext>, std::string&) { return {}; }

}  // namespace framelane
