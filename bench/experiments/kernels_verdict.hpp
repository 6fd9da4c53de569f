// What the suite `kernels` makes of its figures. Any thread; no GPU.
#pragma once

#include <string>

#include "bench/harness/result.hpp"

namespace framelane::bench {

struct Multiprocessors {
  int count;
  int resident_threads;  ///< on each, at most
};

/// Kernels that are alike.
struct KernelShape {
  int threads;
  int block_threads;  ///< of these; divides `threads`
};

/// How many kernels at once a GPU has room for, by two measures.
struct KernelRoom {
  int one_block_each;  ///< before a multiprocessor gets a second block
  int resident;        ///< before one has to wait for another's threads to end
};
KernelRoom room_for(const KernelShape& kernel, const Multiprocessors& gpu);

/// The most blocks that a multiprocessor has of so many kernels at once, which are spread evenly.
int blocks_each(int kernels, const KernelShape& kernel, const Multiprocessors& gpu);

/// Kernels at once that take no longer than one by more than this share the GPU without loss.
inline constexpr double kFlat = 1.1;

/// Where the time (y) over the number of kernels at once (x) stops being flat, and where it should
/// by the room there is. Requires points.
std::string judge_flatness(const Series& series, const KernelShape& kernel,
                           const Multiprocessors& gpu);

}  // namespace framelane::bench
