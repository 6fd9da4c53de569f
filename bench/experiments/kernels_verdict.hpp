// What the suite `kernels` concludes from its figures. Any thread; needs no GPU.
#pragma once

#include <string>

#include "bench/harness/result.hpp"

namespace framelane::bench {

struct Multiprocessors {
  int count;
  int resident_threads;  ///< on each, at most
};

/// The shape of the kernels, which is the same for all.
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

/// The most blocks that one multiprocessor gets if so many kernels run at once and their blocks are
/// spread evenly.
int blocks_each(int kernels, const KernelShape& kernel, const Multiprocessors& gpu);

/// If kernels at once take no longer than this, relative to one kernel, they share the GPU without
/// loss.
inline constexpr double kFlat = 1.1;

/// Where the time (y) over the number of kernels at once (x) stops being flat, and where it should
/// by the room there is. Requires points.
std::string judge_flatness(const Series& series, const KernelShape& kernel,
                           const Multiprocessors& gpu);

}  // namespace framelane::bench
