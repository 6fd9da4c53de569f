#include "bench/harness/suite.hpp"

#include <algorithm>
#include <array>
#include <exception>

#include "kernels/row_kernels.hpp"
#include "pipeline/stage/gpu.hpp"

namespace framelane::bench {
namespace {

constexpr std::array kSuites{
    Suite{"convert", "BGRA to packed YUV 4:4:4, from host memory to host memory", run_convert},
    Suite{"kernels", "many small kernels at once, and the five kinds of overlap", run_kernels},
    Suite{"overlap", "copy to the GPU, run a kernel, copy back: in turn and at once", run_overlap},
    Suite{"peers",
          "our conversions beside NPP's, libyuv's, swscale's and zimg's, and how exact each is",
          run_peers},
    Suite{"reduce", "the sum of a picture of floats, and a frame's luma, 1000 times", run_reduce},
    Suite{"stage", "the daemon's own stage, host to host, from one feed and from many", run_stage},
    Suite{"vecadd", "adding two vectors in segments over several streams", run_vecadd},
};

}  // namespace

std::span<const Suite> suites() { return kSuites; }

const Suite* find_suite(std::string_view name) {
  const auto* found = std::ranges::find(kSuites, name, &Suite::name);
  return found == kSuites.end() ? nullptr : found;
}

Result run_suite(const Suite& suite, const Session& session) {
  Result result;
  result.suite = suite.name;
  result.title = suite.title;
  result.setup.push_back({"CPU", session.cpu->model() + ", " + std::string(simd_level())});
  result.setup.push_back({"rounds", std::int64_t{session.rounds}});
  if (session.gpu != nullptr) {
    result.setup.push_back({"GPU", session.gpu->model() + ", CUDA " + cuda_build_version() +
                                       ", driver for " + cuda_driver_version()});
  }
  try {
    suite.run(session, result);
  } catch (const std::exception& error) {
    result.problems.emplace_back(error.what());
  }
  // A stop may also come between two parts of a suite, outside of take_turns.
  result.interrupted = result.interrupted || session.stopped();
  return result;
}

}  // namespace framelane::bench
