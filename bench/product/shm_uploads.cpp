// Uploads frames from a producer's shared memory as fast as the bus takes them: what feeds that
// read it could reach at best. The memory is mapped and registered as for a feed.
//
//     framelane_shm_uploads SOCKET FRAME_BYTES SECONDS
//
// Prints the frames a second.
#include <cuda_runtime_api.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stop_token>
#include <vector>

#include "bench/product/shm_frames.hpp"
#include "pipeline/source/shm_connection.hpp"
#include "pipeline/stage/cuda/cuda_device.hpp"
#include "pipeline/stage/cuda/cuda_error.hpp"
#include "pipeline/stage/cuda/cuda_handles.hpp"
#include "pipeline/stage/device.hpp"

namespace framelane {
namespace {

using Clock = std::chrono::steady_clock;

double measure(const char* socket, std::size_t frame_bytes, double seconds) {
  const auto device = CudaDevice::open(0, make_cpu_device());
  const auto connection = ShmConnection::open(socket, SIZE_MAX, std::chrono::seconds(10), {});
  const auto frame = connection->next();
  const std::vector<const std::uint8_t*> frames = frames_in(*frame->area, frame_bytes);

  constexpr int kAhead = 24;  // uploads that are queued and not yet waited for
  device->context()->make_current();
  void* target = nullptr;
  cuda::check(cudaMalloc(&target, frame_bytes), "cudaMalloc");
  double rate = 0;
  {
    const CudaStream stream;
    std::vector<CudaEvent> done;
    for (int i = 0; i < kAhead; ++i) done.emplace_back(CudaEvent::Kind::kDone);
    Clock::time_point start;
    for (int i = 0; rate == 0; ++i) {
      const CudaEvent& event = done[static_cast<std::size_t>(i % kAhead)];
      if (i >= kAhead) event.synchronize();
      cuda::check(cudaMemcpyAsync(target, frames[static_cast<std::size_t>(i) % frames.size()],
                                  frame_bytes, cudaMemcpyHostToDevice, stream.get()),
                  "cudaMemcpyAsync");
      event.record(stream);
      if (i == kAhead) start = Clock::now();
      const double passed = std::chrono::duration<double>(Clock::now() - start).count();
      if (i > kAhead && passed >= seconds) rate = (i - kAhead) / passed;
    }
    stream.synchronize();
  }
  cuda::report(cudaFree(target), "cudaFree");
  connection->give_back(*frame);
  return rate;
}

}  // namespace
}  // namespace framelane

int main(int count, char** arguments) {
  if (count != 4) {
    std::fprintf(stderr, "usage: %s SOCKET FRAME_BYTES SECONDS\n", arguments[0]);
    return 2;
  }
  try {
    std::printf("%.1f frames/s\n",
                framelane::measure(arguments[1], std::strtoull(arguments[2], nullptr, 10),
                                   std::atof(arguments[3])));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", arguments[0], error.what());
    return 1;
  }
  return 0;
}
