#include "bench/suites/segmented_add.hpp"

#include "bench/suites/bench_kernels.hpp"

namespace framelane::bench {
namespace {

float* floats(const DeviceMemory& memory) { return reinterpret_cast<float*>(memory.data()); }

}  // namespace

SegmentedAdd::Room::Room(CudaContext& context, std::size_t segment)
    : a(segment * sizeof(float), context.memory_stream(), context.memory_bytes),
      b(segment * sizeof(float), context.memory_stream(), context.memory_bytes),
      c(segment * sizeof(float), context.memory_stream(), context.memory_bytes) {}

SegmentedAdd::SegmentedAdd(CudaContext& context, int streams, std::size_t segment)
    : segment_(segment), streams_(streams) {
  for (int i = 0; i < streams; ++i) rooms_.push_back(std::make_unique<Room>(context, segment));
  context.memory_stream().synchronize();
}

void SegmentedAdd::run(IssueOrder order, const float* a, const float* b, float* c,
                       std::size_t length) const {
  const auto room = [this](const Piece& piece) -> const Room& {
    return *rooms_[static_cast<std::size_t>(piece.stream)];
  };
  issue(
      order, length, segment_, streams_.size(),
      [&](const Piece& piece) {
        const std::size_t bytes = piece.count * sizeof(float);
        const cudaStream_t stream = streams_[piece.stream].get();
        copy(room(piece).a.data(), a + piece.begin, bytes, cudaMemcpyHostToDevice, stream);
        copy(room(piece).b.data(), b + piece.begin, bytes, cudaMemcpyHostToDevice, stream);
      },
      [&](const Piece& piece) {
        cuda::check(enqueue_add(floats(room(piece).a), floats(room(piece).b), floats(room(piece).c),
                                piece.count, streams_[piece.stream].get()),
                    "cudaLaunchKernel");
      },
      [&](const Piece& piece) {
        copy(c + piece.begin, room(piece).c.data(), piece.count * sizeof(float),
             cudaMemcpyDeviceToHost, streams_[piece.stream].get());
      });
  streams_.synchronize(streams_.size());
}

}  // namespace framelane::bench
