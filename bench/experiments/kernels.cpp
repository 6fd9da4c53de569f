// Many small kernels at once, and what else a GPU and its host do at once: the five kinds of
// overlap.
#include <fmt/core.h>

#include "bench/harness/suite.hpp"
#ifdef FRAMELANE_WITH_CUDA
#include <memory>

#include "bench/experiments/kernels_gpu.hpp"
#include "bench/experiments/kernels_verdict.hpp"
#include "kernels/cuda/host_body.hpp"
#include "pipeline/stage/gpu.hpp"
#endif

namespace framelane::bench {
namespace {

#ifdef FRAMELANE_WITH_CUDA

/// Calls `each` for every curve that was measured: one for each number of threads and of
/// connections.
template <typename Each>
void for_each_curve(const Result& result, const Each& each) {
  for (const int threads : kThreadCounts) {
    for (const std::int64_t queues : {kFewConnections, connections()}) {
      const Series series = series_of(
          result, fmt::format("{} threads, {} connections", threads, queues), "kernels at once",
          {{"threads", std::int64_t{threads}}, {"connections", queues}}, "kernels");
      if (!series.points.empty()) each(series, threads);
      if (queues == connections()) break;
    }
  }
}

void judge_many(Result& result, const Multiprocessors& gpu) {
  for_each_curve(result, [&](const Series& series, int threads) {
    result.verdict.push_back(judge_flatness(series, {threads, cuda::kBlockThreads}, gpu));
  });
}

/// If the user has set the number of connections, only that number is measured.
void leave_out_connections(const Session& session, Result& result) {
  for (const std::int64_t queues : {kFewConnections, kManyConnections}) {
    const bool in_other = queues == kFewConnections && session.other_process;
    if (queues == connections() || in_other) continue;
    result.left_out.push_back(fmt::format(
        "{} connections: {} is {} here; where it is not set, both {} and {} are measured", queues,
        kCudaConnections, connections(), kFewConnections, kManyConnections));
  }
}

/// Says so in the verdict if the kernels are too short beside the time that launching all of them
/// takes.
void doubt_lengths(Result& result, const KernelsGpu& gpu) {
  const double launches = kMostKernels * gpu.launch_time();
  if (is_the_other() || launches <= (kFlat - 1) * gpu.small_time()) return;
  result.verdict.push_back(
      fmt::format("launching {} kernels takes {:.2f} ms, which is much beside the {:.2f} ms of "
                  "each: the last ones begin late, and with more --seconds they would be longer",
                  kMostKernels, launches, gpu.small_time()));
}

void judge_pairs(Result& result) {
  for (const Row& row : result.rows) {
    if (!row.counts() || !row.is(row.name, {{"how", "at once"}})) continue;
    const Row* in_turn = result.measured(row.name, {{"how", "in turn"}});
    if (in_turn == nullptr) continue;
    result.verdict.push_back(fmt::format("{}: at once they take {:.2f} of the time in turn",
                                         row.name, row.median() / in_turn->median()));
  }
}

/// Starts a process that measures the same with few connections and with kernels of the same
/// length. Null where there is none.
std::unique_ptr<OtherProcess> with_few_connections(const Session& session, double turn,
                                                   int kernel_steps, Result& result) {
  if (connections() == kFewConnections || !session.other_process || session.stopped()) {
    return nullptr;
  }
  try {
    return session.other_process("kernels", turn * session.rounds * kCurvePoints,
                                 {fmt::format("{}={}", kCudaConnections, kFewConnections),
                                  fmt::format("{}={}", kStepsVariable, kernel_steps)});
  } catch (const std::exception& error) {
    result.problems.push_back("with 8 connections: " + std::string(error.what()));
    return nullptr;
  }
}

void add_few_connections(const Session& session, OtherProcess& process, Result& result) {
  try {
    Result other = process.result();
    for (Row& row : other.rows) {
      if (!row.is("kernels at once")) continue;
      row.note = "in a process of its own";
      result.rows.push_back(std::move(row));
    }
    for (const std::string& problem : other.problems) {
      result.problems.push_back("with 8 connections: " + problem);
    }
  } catch (const std::exception& error) {
    if (session.stopped()) return;  // it may have been told so before it had anything to say
    result.problems.push_back("with 8 connections: " + std::string(error.what()));
  }
}

void run_on_gpu(const Session& session, Result& result) {
  const Multiprocessors multiprocessors{attribute(cudaDevAttrMultiProcessorCount),
                                        attribute(cudaDevAttrMaxThreadsPerMultiProcessor)};
  result.setup.push_back({"multiprocessors", std::int64_t{multiprocessors.count}});
  result.setup.push_back(
      {"resident threads", std::int64_t{multiprocessors.count} * multiprocessors.resident_threads});
  if (!is_the_other()) leave_out_connections(session, result);
  const bool in_two = connections() != kFewConnections && session.other_process;
  const double turn = turn_seconds(
      session, is_the_other() ? kCurvePoints : (in_two ? 2 : 1) * kCurvePoints + 2 * kPairs);
  std::unique_ptr<KernelsGpu> gpu;
  try {
    gpu = std::make_unique<KernelsGpu>(context_of(session),
                                       session.bytes / sizeof(Word) * sizeof(Word), turn);
  } catch (const std::exception& error) {
    result.problems.push_back(problem_of_gpu(session, "--bytes", error));
    return;
  }
  result.setup.push_back({"a launch", fmt::format("{:.1f} us", 1e3 * gpu->launch_time())});
  result.setup.push_back({"a small kernel", fmt::format("{:.1f} ms", gpu->small_time())});
  const auto other = with_few_connections(session, turn, gpu->small_steps(), result);
  Session in_turn = session;
  if (other != nullptr) {
    in_turn.after_round = [&] {
      other->round();
      if (session.after_round) session.after_round();
    };
  }
  take_turns(in_turn, turn, gpu->contenders(), result);
  if (other != nullptr) add_few_connections(session, *other, result);
  judge_many(result, multiprocessors);
  doubt_lengths(result, *gpu);
  judge_pairs(result);
  Chart chart{"Small kernels at once, each on a stream", "kernels", "ms", true, {}, {}};
  for_each_curve(result, [&](const Series& series, int) { chart.series.push_back(series); });
  if (!chart.series.empty()) result.charts.push_back(std::move(chart));
}

#endif

}  // namespace

void run_kernels(const Session& session, Result& result) {
  result.setup.push_back({"bytes of a copy", static_cast<std::int64_t>(session.bytes)});
  result.published_by = "\"GPU编程 CUDA C++ 用非默认CUDA流重叠多个核函数在GPU中并发执行\", CSDN";
#ifdef FRAMELANE_WITH_CUDA
  if (session.gpu != nullptr) {
    require_memory(session, KernelsGpu::kBuffers * session.bytes, "--bytes");
    return run_on_gpu(session, result);
  }
#endif
  result.left_out.push_back("all of it, which is about a GPU's kernels and copies: " +
                            session.no_gpu);
}

}  // namespace framelane::bench
