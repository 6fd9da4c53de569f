// Built instead of the suites' sources for a GPU if there is no CUDA backend.
#include "bench/harness/turns.hpp"
#include "bench/product/stage_work_gpu.hpp"

namespace framelane::bench {

bool gpu_lacks_memory(const std::exception&) { return false; }

std::unique_ptr<GpuContenders> make_gpu_contenders(const Session&, const Work&,
                                                   std::span<const PooledImage>, const StageFrames&,
                                                   double) {
  return nullptr;
}
std::size_t device_bytes(std::span<const Conversion>, int) { return 0; }
std::size_t free_device_bytes(const Session&) { return 0; }

}  // namespace framelane::bench
