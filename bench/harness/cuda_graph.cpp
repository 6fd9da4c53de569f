// Of the program alone, which is linked with NVIDIA's runtime.
#include "bench/harness/cuda_graph.hpp"

#include <memory>

#include "pipeline/stage/cuda/cuda_error.hpp"

namespace framelane::bench {
namespace {

struct DestroyGraph {
  void operator()(cudaGraph_t graph) const {
    cuda::report(cudaGraphDestroy(graph), "cudaGraphDestroy");
  }
};
struct DestroyLaunchable {
  void operator()(cudaGraphExec_t graph) const {
    cuda::report(cudaGraphExecDestroy(graph), "cudaGraphExecDestroy");
  }
};

}  // namespace

std::function<void()> make_graph(int times, cudaStream_t stream,
                                 const std::function<cudaError_t(int)>& enqueue) {
  // The first launch loads the kernel, which must not happen while a graph is captured.
  cuda::check(enqueue(0), "cudaLaunchKernel");
  cuda::check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  cuda::check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
              "cudaStreamBeginCapture");
  cudaError_t queued = cudaSuccess;
  for (int i = 0; i < times && queued == cudaSuccess; ++i) queued = enqueue(i);
  cudaGraph_t captured = nullptr;
  const cudaError_t ended = cudaStreamEndCapture(stream, &captured);
  cuda::check(queued, "cudaLaunchKernel");
  cuda::check(ended, "cudaStreamEndCapture");
  const std::unique_ptr<CUgraph_st, DestroyGraph> graph(captured);
  cudaGraphExec_t made = nullptr;
  cuda::check(cudaGraphInstantiate(&made, graph.get(), 0), "cudaGraphInstantiate");
  const std::shared_ptr<CUgraphExec_st> launchable(made, DestroyLaunchable());
  cuda::check(cudaGraphUpload(launchable.get(), stream), "cudaGraphUpload");
  return [stream, launchable] {
    cuda::check(cudaGraphLaunch(launchable.get(), stream), "cudaGraphLaunch");
  };
}

}  // namespace framelane::bench
