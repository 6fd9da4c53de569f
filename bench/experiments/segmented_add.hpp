#pragma once

#include <memory>
#include <vector>

#include "bench/experiments/issue_order.hpp"
#include "bench/harness/gpu_part.hpp"

namespace framelane::bench {

/// c = a + b on a GPU, segment by segment, for vectors of any length in host memory. Each stream
/// has room on the GPU for one segment of each vector, and reuses it for its next segment.
class SegmentedAdd {
 public:
  /// `segment`: elements. Throws CudaError.
  SegmentedAdd(CudaContext& context, int streams, std::size_t segment);

  /// Returns when `c` is complete. Throws CudaError.
  void run(IssueOrder order, const float* a, const float* b, float* c, std::size_t length) const;
  /// Only uploads both vectors, at most one segment of each; returns when they are there.
  void upload(const float* a, const float* b, std::size_t length) const;

 private:
  struct Room {
    Room(CudaContext& context, std::size_t segment);
    DeviceMemory a, b, c;
  };

  const Room& room(const Piece& piece) const {
    return *rooms_[static_cast<std::size_t>(piece.stream)];
  }
  void queue_upload(const Piece& piece, const float* a, const float* b) const;

  const std::size_t segment_;
  std::vector<std::unique_ptr<Room>> rooms_;
  Streams streams_;  // the first to go
};

}  // namespace framelane::bench
