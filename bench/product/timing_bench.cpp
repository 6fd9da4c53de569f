// Checks our busy times of engines and lanes against what the GPU really did. Runs the stage alone,
// and then while CUPTI records every copy and kernel, and compares our meters with the union of
// CUPTI's records; both use the steady clock. CUPTI slows down what it records, mostly between the
// copies and kernels, so both runs are shown. Needs a GPU, and libcupti where the loader finds it.
//
//   framelane_timing_bench [SECONDS]
//
// Before a kernel or download begins, the GPU fetches its commands over the bus, which copies keep
// busy. Our events cannot tell that time from work (docs/benchmarks.md). So this program fails if
// an engine's busy time per frame, in the run without CUPTI, is off by more than 5 % plus that
// time.
#include <cupti.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bench/product/stage_feed.hpp"
#include "pipeline/stage/gpu.hpp"

namespace framelane {
namespace {

using namespace bench;

constexpr double kAllowed = 5;       // percent
constexpr double kFetching = 20e-6;  // seconds for commands, of a kernel or download
constexpr std::size_t kEngines = kEngineNames.size();

struct Span {
  std::uint64_t start;  // ns of the steady clock
  std::uint64_t end;
  std::uint32_t correlation = 0;  // of the call that queued it
  const void* target = nullptr;   // of an upload: where in the GPU's memory, so of which lane
};
using Spans = std::vector<Span>;

void check(CUptiResult result, const char* call) {
  if (result == CUPTI_SUCCESS) return;
  const char* text = nullptr;
  cuptiGetResultString(result, &text);
  throw std::runtime_error(std::string(call) + ": " + (text != nullptr ? text : "unknown error"));
}

/// What CUPTI says the GPU did. One per process; CUPTI's own threads add to it.
class Recorder {
 public:
  Recorder() {
    check(cuptiActivityRegisterTimestampCallback(&now), "cuptiActivityRegisterTimestampCallback");
    check(cuptiActivityRegisterCallbacks(&give_buffer, &take_buffer),
          "cuptiActivityRegisterCallbacks");
    check(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY), "cuptiActivityEnable");
    check(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), "cuptiActivityEnable");
    check(cuptiSubscribe(&subscriber_, &see_call, nullptr), "cuptiSubscribe");
    for (const CUpti_CallbackId call : {CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020,
                                        CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy2DAsync_v3020}) {
      check(cuptiEnableCallback(1, subscriber_, CUPTI_CB_DOMAIN_RUNTIME_API, call),
            "cuptiEnableCallback");
    }
  }
  ~Recorder() { cuptiFinalize(); }

  /// All records since the last call, by engine, in the order in which they began.
  std::array<Spans, kEngines> take() {
    check(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), "cuptiActivityFlushAll");
    const std::lock_guard lock(mutex());
    std::array<Spans, kEngines> result = std::exchange(spans(), {});
    for (Spans& engine : result) std::ranges::sort(engine, {}, &Span::start);
    for (Span& upload : result[index_of(Engine::kH2d)]) {
      upload.target = targets().at(upload.correlation);
    }
    targets().clear();
    return result;
  }

 private:
  static constexpr std::size_t kBufferBytes = 8 << 20;

  static std::mutex& mutex() {
    static std::mutex instance;
    return instance;
  }
  static std::array<Spans, kEngines>& spans() {
    static std::array<Spans, kEngines> instance;
    return instance;
  }
  /// Where the copies of these calls go.
  static std::unordered_map<std::uint32_t, const void*>& targets() {
    static std::unordered_map<std::uint32_t, const void*> instance;
    return instance;
  }
  static void CUPTIAPI see_call(void*, CUpti_CallbackDomain, CUpti_CallbackId id,
                                const void* what) {
    const auto& call = *static_cast<const CUpti_CallbackData*>(what);
    if (call.callbackSite != CUPTI_API_ENTER) return;
    const void* const target =
        id == CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020
            ? static_cast<const cudaMemcpyAsync_v3020_params*>(call.functionParams)->dst
            : static_cast<const cudaMemcpy2DAsync_v3020_params*>(call.functionParams)->dst;
    const std::lock_guard lock(mutex());
    targets()[call.correlationId] = target;
  }
  static std::uint64_t CUPTIAPI now() {
    return static_cast<std::uint64_t>(
        std::chrono::nanoseconds(Clock::now().time_since_epoch()).count());
  }
  static void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* records) {
    *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, kBufferBytes));
    *size = *buffer != nullptr ? kBufferBytes : 0;
    *records = 0;  // as many as there is room for
  }
  static void CUPTIAPI take_buffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t,
                                   std::size_t valid) {
    const std::lock_guard lock(mutex());
    CUpti_Activity* record = nullptr;
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) add(*record);
    std::free(buffer);
  }
  static void add(const CUpti_Activity& record) {
    if (record.kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
      const auto& kernel = reinterpret_cast<const CUpti_ActivityKernel10&>(record);
      spans()[index_of(Engine::kKernel)].push_back({kernel.start, kernel.end});
    } else if (record.kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
      const auto& copy = reinterpret_cast<const CUpti_ActivityMemcpy6&>(record);
      const Engine engine =
          copy.copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_HTOD ? Engine::kH2d : Engine::kD2h;
      spans()[index_of(engine)].push_back({copy.start, copy.end, copy.correlationId});
    }
  }

  CUpti_SubscriberHandle subscriber_ = nullptr;
};

/// Seconds in which at least one of the spans, ascending by start, was under way.
double busy(const Spans& spans) {
  std::uint64_t sum = 0;
  std::uint64_t until = 0;
  for (const Span& span : spans) {
    if (span.end > until) sum += span.end - std::max(span.start, until);
    until = std::max(until, span.end);
  }
  return static_cast<double>(sum) * 1e-9;
}

std::array<double, kEngines> seconds_of(const EngineMeters& meters) {
  std::array<double, kEngines> result{};
  for (std::size_t i = 0; i < kEngines; ++i) {
    result[i] = std::chrono::duration<double>(meters[static_cast<Engine>(i)].total()).count();
  }
  return result;
}

/// Each lane's busy seconds of each engine. Each job is one upload, one kernel and one download,
/// and jobs go through all engines in the same order. The memory that a job is uploaded to tells
/// its lane.
std::vector<std::array<double, kEngines>> lanes_of(const std::array<Spans, kEngines>& spans) {
  const Spans& uploads = spans[index_of(Engine::kH2d)];
  std::map<const void*, std::array<Spans, kEngines>> by_lane;
  for (std::size_t i = 0; i < kEngines; ++i) {
    if (spans[i].size() != uploads.size()) {
      throw std::runtime_error("CUPTI has more of one kind than of another: some are missing");
    }
    for (std::size_t n = 0; n < uploads.size(); ++n) {
      by_lane[uploads[n].target][i].push_back(spans[i][n]);
    }
  }
  std::vector<std::array<double, kEngines>> result;
  for (const auto& [memory, lane] : by_lane) {
    std::array<double, kEngines> seconds{};
    for (std::size_t i = 0; i < kEngines; ++i) seconds[i] = busy(lane[i]);
    result.push_back(seconds);
  }
  return result;
}

/// How much ours is above (or, negative, below) theirs, in percent.
double percent_off(double ours, double theirs) {
  return theirs > 0 ? (ours / theirs - 1) * 100 : (ours > 0 ? 100 : 0);
}

struct Load {
  const char* title;
  Size size;
  int feeds;
};

/// What our meters say of some seconds under a load.
struct Metered {
  double time = 0;
  double frames = 0;
  std::array<double, kEngines> engines{};
  std::vector<std::array<double, kEngines>> lanes;
};

using Feeds = std::vector<std::unique_ptr<BenchFeed>>;

Metered read_meters(Device& device, const Feeds& feeds) {
  Metered result;
  result.engines = seconds_of(device.busy());
  for (const auto& feed : feeds) {
    for (const auto& lane : feed->stats().lanes()) {
      result.lanes.push_back(seconds_of(lane->busy));
    }
  }
  return result;
}

Metered measure(Device& device, const Load& load, double seconds, Recorder* recorder) {
  Feeds feeds;
  for (int i = 0; i < load.feeds; ++i) {
    // Unsliced, so that each frame is one upload and one kernel.
    feeds.push_back(std::make_unique<BenchFeed>(
        device, conversion(PixelFormat::kBgra, PixelFormat::kNv12, load.size),
        StageShape{.slices = 1}));
  }
  run_feeds(feeds, 0.2);  // pools grow
  if (recorder != nullptr) recorder->take();
  const Metered before = read_meters(device, feeds);
  const Clock::time_point start = Clock::now();
  const StageFigures figures = run_feeds(feeds, seconds);
  Metered result = read_meters(device, feeds);
  result.time = seconds_since(start);
  result.frames = figures.frames_per_second * result.time;
  for (std::size_t i = 0; i < kEngines; ++i) {
    result.engines[i] -= before.engines[i];
    for (std::size_t lane = 0; lane < result.lanes.size(); ++lane) {
      result.lanes[lane][i] -= before.lanes[lane][i];
    }
  }
  return result;
}

/// Whether all is within what is allowed.
bool compare(const Load& load, const Metered& alone, Metered recorded,
             const std::array<Spans, kEngines>& spans) {
  std::vector<std::array<double, kEngines>> theirs = lanes_of(spans);
  if (theirs.size() != recorded.lanes.size()) {
    throw std::runtime_error("CUPTI has " + std::to_string(theirs.size()) + " lanes of " +
                             std::to_string(recorded.lanes.size()));
  }
  const auto frames = static_cast<double>(spans[index_of(Engine::kKernel)].size());
  std::printf("%s, %d feed%s: %.0f frames/s alone, %.0f recorded\n", load.title, load.feeds,
              load.feeds == 1 ? "" : "s", alone.frames / alone.time, frames / recorded.time);
  bool good = true;
  for (std::size_t i = 0; i < kEngines; ++i) {
    // CUPTI does not say which memory belongs to which lane, so both are sorted: the busiest is
    // compared with the busiest.
    const auto by_engine = [i](const auto& lane) { return lane[i]; };
    std::ranges::sort(recorded.lanes, {}, by_engine);
    std::ranges::sort(theirs, {}, by_engine);
    double worst = 0;
    for (std::size_t lane = 0; lane < theirs.size(); ++lane) {
      const double off = percent_off(recorded.lanes[lane][i], theirs[lane][i]);
      if (std::abs(off) > std::abs(worst)) worst = off;
    }
    const double cupti = busy(spans[i]) / frames;
    const double ours = alone.engines[i] / alone.frames;
    std::printf(
        "  %-6s  CUPTI %8.2f us a frame; ours alone %8.2f (%+.1f %%), recorded %8.2f "
        "(%+.1f %%; lanes %+.1f %% at worst)\n",
        kEngineNames[i].data(), cupti * 1e6, ours * 1e6, percent_off(ours, cupti),
        recorded.engines[i] / frames * 1e6, percent_off(recorded.engines[i] / frames, cupti),
        worst);
    const double more = i == index_of(Engine::kH2d) ? 0 : kFetching;
    const double within = kAllowed / 100 * cupti;
    good = good && ours - cupti <= within + more && cupti - ours <= within;
  }
  return good;
}

int run(double seconds) {
  const GpuResult gpu = open_gpu(0, make_cpu_device());
  if (gpu.device == nullptr) {
    std::fprintf(stderr, "framelane_timing_bench: %s\n", gpu.why.c_str());
    return 1;
  }
  std::printf("%s, CUDA %s, driver for %s\n", gpu.device->model().c_str(),
              cuda_build_version().c_str(), cuda_driver_version().c_str());
  constexpr std::array kLoads{Load{"1080p BGRA to NV12", k1080p, 1},
                              Load{"1080p BGRA to NV12", k1080p, 16},
                              Load{"8K BGRA to NV12", k8K, 1}};
  std::vector<Metered> alone;
  for (const Load& load : kLoads) {
    alone.push_back(measure(*gpu.device, load, seconds, nullptr));
  }
  Recorder recorder;
  bool good = true;
  for (std::size_t i = 0; i < kLoads.size(); ++i) {
    const Metered recorded = measure(*gpu.device, kLoads[i], seconds, &recorder);
    good = compare(kLoads[i], alone[i], recorded, recorder.take()) && good;
  }
  return good ? 0 : 1;
}

}  // namespace
}  // namespace framelane

int main(int argc, char** argv) {
  try {
    return framelane::run(argc > 1 ? std::atof(argv[1]) : 3);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "framelane_timing_bench: %s\n", error.what());
    return 1;
  }
}
