// Copy to the GPU, run a kernel on it, copy back: one after the other, and in chunks over streams,
// in both orders of issue, from memory that is pinned and that is not.
#include <fmt/core.h>

#include <cstring>

#include "bench/experiments/issue_order.hpp"
#include "bench/experiments/overlap_verdict.hpp"
#include "bench/harness/suite.hpp"
#ifdef FRAMELANE_WITH_CUDA
#include <memory>

#include "bench/harness/bench_kernels.hpp"
#include "bench/harness/ceilings.hpp"
#include "bench/harness/device_code.hpp"
#include "bench/harness/gpu_part.hpp"
#include "pipeline/frames/host_buffer.hpp"
#endif

namespace framelane::bench {
namespace {

constexpr const char* kPublishedBy =
    "Tesla K20c; M. Harris, \"How to Overlap Data Transfers in CUDA C/C++\", NVIDIA technical blog";

#ifdef FRAMELANE_WITH_CUDA

constexpr int kStreams[] = {1, 2, 4, 8, 16, 32};
constexpr std::size_t kChunks[] = {64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 32 << 20};

using Words = std::uint32_t;

/// The data, what the kernel has to make of it, and where it goes.
class OverlapGpu {
 public:
  static constexpr std::size_t kBuffers = 5;  ///< in host memory, of so many bytes each

  OverlapGpu(CudaContext& context, std::size_t bytes)
      : count_(bytes / sizeof(Words)),
        source_(bytes),
        target_(bytes),
        pageable_source_(count_),
        pageable_target_(count_),
        device_(context.allocate(bytes)) {
    context.memory_stream().synchronize();
    const auto period = std::min(count_, kPeriod);
    for (std::size_t i = 0; i < count_; ++i) {
      words(source_)[i] = static_cast<Words>(i % period) * 2654435761U + 1;
    }
    std::memcpy(pageable_source_.data(), source_.data(), bytes);
    choose_steps();
    expect(period);
  }

  int steps() const { return steps_; }

  std::vector<Contender> contenders(Result& result) {
    std::vector<Contender> all = ceilings();
    int skipped = 0;
    for (const bool pinned : {true, false}) {
      all.push_back(contender(kInTurn, pinned, {},
                              [=, this] { run(pinned, IssueOrder::kDepthFirst, count_, 1); }));
      for (const IssueOrder order : kIssueOrders) {
        for (const std::size_t chunk : kChunks) {
          for (const int streams : kStreams) {
            const std::size_t chunks = (count_ * sizeof(Words) + chunk - 1) / chunk;
            // With one stream both orders do the same, and streams without a chunk do nothing.
            if (static_cast<std::size_t>(streams) > chunks ||
                (streams == 1 && order == IssueOrder::kBreadthFirst)) {
              ++skipped;
              continue;
            }
            all.push_back(
                contender(kInChunks, pinned,
                          {{kOrder, name_of(order)},
                           {kChunk, static_cast<std::int64_t>(chunk >> 10)},
                           {kOverStreams, std::int64_t{streams}}},
                          [=, this] { run(pinned, order, chunk / sizeof(Words), streams); }));
          }
        }
      }
    }
    result.left_out.push_back(
        fmt::format("{} combinations with more streams than chunks, or with one stream breadth "
                    "first: they are the same as others",
                    skipped));
    return all;
  }

 private:
  /// The words repeat after a prime number of them. So no two chunks hold the same words, and the
  /// host works out few results.
  static constexpr std::size_t kPeriod = 65521;

  static Words* words(const HostBuffer& buffer) { return reinterpret_cast<Words*>(buffer.data()); }
  Words* device() const { return reinterpret_cast<Words*>(device_.data()); }
  std::size_t bytes() const { return count_ * sizeof(Words); }

  void upload(const Words* from, std::size_t begin, std::size_t count, cudaStream_t stream) const {
    copy(device() + begin, from + begin, count * sizeof(Words), cudaMemcpyHostToDevice, stream);
  }
  void mix(std::size_t begin, std::size_t count, int steps, cudaStream_t stream) const {
    cuda::check(enqueue_mix(device() + begin, device() + begin, count, steps, stream),
                "cudaLaunchKernel");
  }
  void download(Words* to, std::size_t begin, std::size_t count, cudaStream_t stream) const {
    copy(to + begin, device() + begin, count * sizeof(Words), cudaMemcpyDeviceToHost, stream);
  }

  double kernel_time(int steps) const {
    return milliseconds([&] {
      mix(0, count_, steps, streams_[0].get());
      streams_[0].synchronize();
    });
  }
  /// Chooses the number of steps so that the kernel takes about as long as the upload: then overlap
  /// gains the most.
  void choose_steps() {
    const auto copy_up = [this] {
      upload(words(source_), 0, count_, streams_[0].get());
      streams_[0].synchronize();
    };
    copy_up();  // the first is slower
    const double copying = milliseconds(copy_up);
    steps_ = steps_for(copying, [this](int steps) { return kernel_time(steps); });
  }
  void expect(std::size_t period) {
    expected_.resize(count_);
    for (std::size_t i = 0; i < count_; ++i) {
      if (i >= period) {
        expected_[i] = expected_[i - period];
        continue;
      }
      expected_[i] = mix_word(words(source_)[i], steps_);
    }
  }

  void run(bool pinned, IssueOrder order, std::size_t chunk, int streams) {
    const Words* from = pinned ? words(source_) : pageable_source_.data();
    Words* to = pinned ? words(target_) : pageable_target_.data();
    const auto stream = [this](const Piece& piece) { return streams_[piece.stream].get(); };
    issue(
        order, count_, chunk, streams,
        [&](const Piece& piece) { upload(from, piece.begin, piece.count, stream(piece)); },
        [&](const Piece& piece) { mix(piece.begin, piece.count, steps_, stream(piece)); },
        [&](const Piece& piece) { download(to, piece.begin, piece.count, stream(piece)); });
    streams_.synchronize(streams);
  }

  Contender contender(const char* name, bool pinned, std::vector<Parameter> parameters,
                      std::function<void()> work) {
    parameters.insert(parameters.begin(), {kMemory, pinned ? "pinned" : "pageable"});
    Words* const target = pinned ? words(target_) : pageable_target_.data();
    return {{.name = name, .parameters = std::move(parameters)},
            [=, this] { std::memset(target, 0, bytes()); },
            [work = std::move(work)] { return milliseconds(work); },
            [=, this] {
              return first_difference(reinterpret_cast<const std::uint8_t*>(expected_.data()),
                                      reinterpret_cast<const std::uint8_t*>(target), bytes());
            }};
  }

  std::vector<Contender> ceilings() {
    // The upload goes to one half of the GPU's memory, the download comes from the other.
    const std::size_t half = count_ / 2;
    const auto size = static_cast<double>(2 * half * sizeof(Words));
    const auto copies = [this, half](bool up, bool down) {
      return milliseconds([&] {
        for (const std::size_t begin : {std::size_t{0}, half}) {
          const std::size_t bytes = half * sizeof(Words);
          if (up) {
            copy(device(), words(source_) + begin, bytes, cudaMemcpyHostToDevice,
                 streams_[0].get());
          }
          if (down) {
            copy(words(target_) + begin, device() + half, bytes, cudaMemcpyDeviceToHost,
                 streams_[1].get());
          }
        }
        streams_.synchronize(2);
      });
    };
    return {
        {{.name = kUploadAlone, .bytes = size}, {}, [=] { return copies(true, false); }, {}},
        {{.name = kDownloadAlone, .bytes = size}, {}, [=] { return copies(false, true); }, {}},
        {{.name = kBothWaysAtOnce, .bytes = 2 * size}, {}, [=] { return copies(true, true); }, {}},
        {{.name = kKernelAlone}, {}, [this] { return kernel_time(steps_); }, {}}};
  }

  const std::size_t count_;
  HostBuffer source_, target_;
  std::vector<Words> pageable_source_, pageable_target_;
  std::vector<Words> expected_;
  int steps_ = 0;
  DeviceMemory device_;
  Streams streams_{32};  // the first to go
};

void judge(Result& result, int copy_engines) {
  const Row* in_turn = result.measured(kInTurn, {{kMemory, "pinned"}});
  const Row* best = result.fastest(kInChunks, {{kMemory, "pinned"}});
  const Row* both = result.measured(kBothWaysAtOnce);
  const Row* kernel = result.measured(kKernelAlone);
  if (in_turn != nullptr && best != nullptr && both != nullptr && kernel != nullptr) {
    const double limit = std::max(both->median(), kernel->median());
    result.verdict.push_back(fmt::format(
        "chunks of {} KiB over {} streams, {}, are {:.2f} times as fast as in turn, and take "
        "{:.2f} times what the longest of the three alone takes (copies both ways at once, kernel)",
        to_string(parameter(best->parameters, kChunk)),
        to_string(parameter(best->parameters, kOverStreams)),
        to_string(parameter(best->parameters, kOrder)), in_turn->median() / best->median(),
        best->median() / limit));
  }
  const Row* pageable = result.measured(kInTurn, {{kMemory, "pageable"}});
  const Row* pageable_best = result.fastest(kInChunks, {{kMemory, "pageable"}});
  if (in_turn != nullptr && pageable != nullptr && pageable_best != nullptr) {
    result.verdict.push_back(fmt::format(
        "pageable memory takes {:.2f} times what pinned memory takes in turn; chunks "
        "make it {:.2f} times as fast",
        pageable->median() / in_turn->median(), pageable->median() / pageable_best->median()));
  }
  result.verdict.push_back(judge_copy_engines(copy_engines, result));
  const std::string order = judge_order(result);
  if (!order.empty()) result.verdict.push_back(order);
}

void draw(Result& result) {
  for (const char* memory : {"pinned", "pageable"}) {
    const Row* in_turn = result.measured(kInTurn, {{kMemory, memory}});
    for (const IssueOrder order : kIssueOrders) {
      Chart chart{fmt::format("Copy, run, copy back: {} memory, {}", memory, name_of(order)),
                  "chunk, KiB",
                  "ms",
                  true,
                  {},
                  {}};
      for (const int streams : kStreams) {
        Series series = series_of(
            result, fmt::format("{} stream{}", streams, streams == 1 ? "" : "s"), kInChunks,
            {{kMemory, memory}, {kOrder, name_of(order)}, {kOverStreams, std::int64_t{streams}}},
            kChunk);
        if (!series.points.empty()) chart.series.push_back(std::move(series));
      }
      if (in_turn != nullptr) chart.levels.push_back({kInTurn, in_turn->median()});
      if (!chart.series.empty()) result.charts.push_back(std::move(chart));
    }
  }
}

void run_on_gpu(const Session& session, Result& result) {
  const int copy_engines = attribute(cudaDevAttrAsyncEngineCount);
  result.setup.push_back({"copy engines", std::int64_t{copy_engines}});
  std::unique_ptr<OverlapGpu> gpu;
  try {
    gpu = std::make_unique<OverlapGpu>(context_of(session), session.bytes / 4 * 4);
  } catch (const std::exception& error) {
    result.problems.push_back(problem_of_gpu(session, "--bytes", error));
    return;
  }
  result.setup.push_back({"kernel's steps", std::int64_t{gpu->steps()}});
  take_turns(session, gpu->contenders(result), result);
  judge(result, copy_engines);
  draw(result);
}

#endif

}  // namespace

void run_overlap(const Session& session, Result& result) {
  result.setup.push_back({"bytes", static_cast<std::int64_t>(session.bytes)});
  result.published_by = kPublishedBy;
  const auto pinned = [](IssueOrder order) {
    return std::vector<Parameter>{{kMemory, "pinned"}, {kOrder, name_of(order)}};
  };
  result.published = {
      {"sequential", 7.10, "ms", kInTurn, {{kMemory, "pinned"}}},
      {"loop over chunks (depth first)", 3.97, "ms", kInChunks, pinned(IssueOrder::kDepthFirst)},
      {"batched by kind (breadth first)", 3.97, "ms", kInChunks,
       pinned(IssueOrder::kBreadthFirst)}};
#ifdef FRAMELANE_WITH_CUDA
  if (session.gpu != nullptr) {
    require_memory(session, OverlapGpu::kBuffers * session.bytes, "--bytes");
    return run_on_gpu(session, result);
  }
#endif
  result.left_out.push_back("all of it, which is about copies to a GPU and back: " +
                            session.no_gpu);
}

}  // namespace framelane::bench
