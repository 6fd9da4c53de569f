// For benchmarks in which nothing is decoded: FFmpeg's devices would want the libraries of all of
// them.
#include "pipeline/stage/cuda/decode_context.hpp"

namespace framelane {

BufferRef make_decode_context(std::shared_ptr<CudaContext>, std::string&) { return {}; }

}  // namespace framelane
