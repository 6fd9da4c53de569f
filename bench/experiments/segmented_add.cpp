#include "bench/experiments/segmented_add.hpp"

#include <cassert>

#include "bench/harness/bench_kernels.hpp"

namespace framelane::bench {
namespace {

float* floats(const DeviceMemory& memory) { return reinterpret_cast<float*>(memory.data()); }

}  // namespace

SegmentedAdd::Room::Room(CudaContext& context, std::size_t segment)
    : a(context.allocate(segment * sizeof(float))),
      b(context.allocate(segment * sizeof(float))),
      c(context.allocate(segment * sizeof(float))) {}

SegmentedAdd::SegmentedAdd(CudaContext& context, int streams, std::size_t segment)
    : segment_(segment), streams_(streams) {
  for (int i = 0; i < streams; ++i) rooms_.push_back(std::make_unique<Room>(context, segment));
  context.memory_stream().synchronize();
}

void SegmentedAdd::queue_upload(const Piece& piece, const float* a, const float* b) const {
  const std::size_t bytes = piece.count * sizeof(float);
  const cudaStream_t stream = streams_[piece.stream].get();
  copy(room(piece).a.data(), a + piece.begin, bytes, cudaMemcpyHostToDevice, stream);
  copy(room(piece).b.data(), b + piece.begin, bytes, cudaMemcpyHostToDevice, stream);
}

void SegmentedAdd::upload(const float* a, const float* b, std::size_t length) const {
  assert(length <= segment_);
  queue_upload({0, length, 0}, a, b);
  streams_.synchronize(1);
}

void SegmentedAdd::run(IssueOrder order, const float* a, const float* b, float* c,
                       std::size_t length) const {
  issue(
      order, length, segment_, streams_.size(),
      [&](const Piece& piece) { queue_upload(piece, a, b); },
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
