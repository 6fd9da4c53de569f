// What the bus and the GPU can carry: copies and kernels that are queued far ahead, so that the GPU
// never waits for the host. The suite `stage` is measured beside them. Only with the CUDA backend.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "kernels/cuda/cuda_converter.hpp"
#include "pipeline/frames/frame_pool.hpp"
#include "pipeline/stage/cuda/cuda_handles.hpp"
#include "pipeline/stage/cuda/cuda_plan.hpp"

namespace framelane::bench {

/// The copies that one feed's conversions need, and their kernels, each by itself. Rates are frames
/// a second, of which everything is made, measured for `seconds` at least, or until `*stop` is not
/// 0. One thread; throws CudaError.
class StageCeilings {
 public:
  /// Copies from `frames`, round and round. None of the conversions is_bypass. `frames`, the
  /// context and `stop` must outlive this.
  StageCeilings(CudaContext& context, std::span<const Conversion> conversions,
                std::span<const PooledImage> frames, const std::atomic<int>* stop = nullptr);
  /// Waits for what is queued: memory must not go before that.
  ~StageCeilings();
  StageCeilings(const StageCeilings&) = delete;
  StageCeilings& operator=(const StageCeilings&) = delete;

  double upload(double seconds) const;
  /// Of all that is made of a frame.
  double download(double seconds) const;
  /// For each upload of a frame all downloads, side by side.
  double duplex(double seconds) const;
  double kernel(double seconds) const;

 private:
  /// What is made of a frame, for one encode.
  struct Made {
    std::unique_ptr<const CudaConverter> converter;  ///< null: a copy, on which something is drawn
    std::optional<Constants> constants;
    PooledImage target;
  };

  void queue_upload(int i, const CudaStream& stream) const;
  void queue_kernels(const CudaStream& stream) const;
  void queue_downloads(const CudaStream& stream) const;
  /// Rounds a second. In each round every one of `works` queues one piece of work, on the stream of
  /// its index.
  double rate(double seconds, const std::vector<std::function<void(int)>>& works) const;

  const std::span<const PooledImage> frames_;
  const std::atomic<int>* const stop_;
  FramePool pool_;
  std::vector<Made> made_;
  const LaneImages images_;
  const std::array<CudaStream, 2> streams_;
};

}  // namespace framelane::bench
