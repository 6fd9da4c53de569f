#include "bench/experiments/kernels_verdict.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

namespace framelane::bench {

KernelRoom room_for(const KernelShape& kernel, const Multiprocessors& gpu) {
  const int blocks = kernel.threads / kernel.block_threads;
  const int resident_blocks = gpu.resident_threads / kernel.block_threads * gpu.count;
  return {gpu.count / blocks, resident_blocks / blocks};
}

int blocks_each(int kernels, const KernelShape& kernel, const Multiprocessors& gpu) {
  const int blocks = kernels * (kernel.threads / kernel.block_threads);
  return (blocks + gpu.count - 1) / gpu.count;
}

std::string judge_flatness(const Series& series, const KernelShape& kernel,
                           const Multiprocessors& gpu) {
  const Point& first = series.points.front();
  const Point& last = series.points.back();
  const auto slower = std::ranges::find_if(
      series.points, [&first](const Point& point) { return point.y > kFlat * first.y; });
  const Point& flat = *std::prev(slower);  // the first is no slower than itself
  const auto kernels = [&](const Point& point) {
    const auto count = static_cast<int>(point.x);
    return fmt::format("{} kernel{} ({} on a multiprocessor)", count, count == 1 ? "" : "s",
                       blocks_each(count, kernel, gpu));
  };
  std::string sentence =
      fmt::format("{}, in blocks of {}: up to {} the time is at most {:.0f} % more than of {:.0f}",
                  series.name, kernel.block_threads, kernels(flat), 100 * (kFlat - 1), first.x);
  const auto add = [&](const Point& point) {
    sentence += fmt::format(", of {} {:.2f} times as long", kernels(point), point.y / first.y);
  };
  if (slower != series.points.end()) add(*slower);
  if (slower != series.points.end() && &*slower != &last) add(last);
  const KernelRoom room = room_for(kernel, gpu);
  sentence += room.one_block_each > 0
                  ? fmt::format("; no multiprocessor has more than one block up to {} kernels",
                                room.one_block_each)
                  : fmt::format("; one kernel alone gives a multiprocessor {} blocks",
                                blocks_each(1, kernel, gpu));
  return sentence + fmt::format(", and all of their threads are resident up to {}", room.resident);
}

}  // namespace framelane::bench
