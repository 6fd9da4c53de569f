// What counting a frame's luma costs beside converting it, on one core and on a GPU: a part of the
// suite `reduce`.
#pragma once

#include <memory>
#include <vector>

#include "bench/suites/turns.hpp"

namespace framelane::bench {

/// BGRA to NV12, with its luma counted and without. One thread.
class LumaWork {
 public:
  /// Throws NoRoom where the machine has too little memory.
  LumaWork(const Session& session, int width, int height);
  ~LumaWork();
  /// Puts the frames on the session's GPU. Throws what CUDA throws.
  void add_gpu(const Session& session);

  /// Which stay valid as long as this.
  std::vector<Contender> contenders();

 private:
  struct Cpu;
  struct Gpu;
  std::unique_ptr<Cpu> cpu_;
  std::unique_ptr<Gpu> gpu_;
};

/// Adds what the counting costs to the verdict, where it was measured.
void judge_luma(Result& result);

}  // namespace framelane::bench
