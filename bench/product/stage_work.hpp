// A piece of work for the daemon's own stage: one size and conversion, and the ways to do it, which
// take turns. The suite `stage` and `framelane tune` measure it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/product/stage_feed.hpp"

namespace framelane::bench {

// Names of rows.
inline constexpr const char* kUploads = "uploads alone";
inline constexpr const char* kBothWays = "uploads beside downloads";
inline constexpr const char* kDownloads = "downloads alone";
inline constexpr const char* kKernels = "kernels alone";
inline constexpr const char* kStage = "stage";
inline constexpr const char* kStageCounting = "stage, luma counted";
inline constexpr const char* kPageable = "default stream, pageable memory";
inline constexpr const char* kPinned = "default stream, pinned memory";
inline constexpr const char* kEightStreams = "eight streams that slice one frame";

// Names of their figures.
inline constexpr const char* kOfUploads = "of uploads";
inline constexpr const char* kOfBothWays = "of both ways";
inline constexpr const char* kMedianLatency = "p50";
inline constexpr const char* kHighLatency = "p99";
inline constexpr const char* kCpu = "CPU/1000";
inline constexpr const char* kOwnCpu = "own CPU/1000";

inline constexpr const char* kLess = "; ask for less with --size";

struct Setup {
  int feeds = 1;
  StageShape shape = {};
  bool analyse = false;
};

std::vector<Parameter> parameters_of(const Conversion& convert);
std::vector<Parameter> parameters_of(const Conversion& convert, const Setup& setup);

/// One size and conversion, and what is tried with it.
struct Work {
  Conversion convert;
  std::vector<Setup> setups;
  int ceilings = 0;
  bool with_others = false;  ///< on a GPU, also measure the usual ways
};

/// Bytes of one frame before it is converted.
double source_bytes(const Conversion& convert);
/// How many frames go round: more than caches hold, as far as a machine with so much memory can
/// spare it. The number has no divisor in common with any number of lanes, so that each lane gets
/// every frame in turn. A lane that always got the same frame could miss an upload, and its result
/// would be right all the same.
int frames_of(const Work& work, std::size_t memory);
/// Bytes of these frames, together with their exact results.
std::size_t frame_bytes(const Work& work, std::size_t memory);
/// Bytes of the results that the feeds of a setup may hold at once.
std::size_t target_bytes(const Conversion& convert, const Setup& setup);
/// Bytes of a GPU's memory that one feed's conversions need; 0 without the CUDA backend.
std::size_t device_bytes(const Conversion& convert, int encodes, int lanes);
/// Requires a GPU. Throws CudaError.
std::size_t free_device_bytes(const Session& session);
/// Removes the setups whose results need more than a quarter of the machine's memory.
void drop_the_largest(const Session& session, Work& work, Result& result);

class GpuContenders;

/// One size and conversion: its frames, their exact results, and the contenders. One thread. Throws
/// what CUDA and the stage throw.
class StageWork {
 public:
  /// `session` and `work` must outlive this. `turn`: seconds.
  StageWork(const Session& session, const Work& work, double turn);
  ~StageWork();

  /// All contenders: on a GPU first the bus's ceilings, then the setups. With with_others also each
  /// single part of the work and the usual ways. They refer to this object.
  std::vector<Contender> contenders();
  /// The setups alone.
  std::vector<Contender> setups();
  /// The kernels alone. Requires a GPU.
  Contender kernels();
  static constexpr int kOthers = 5;  ///< how many contenders with_others adds

 private:
  Size size() const { return {"", work_.convert.width, work_.convert.height}; }
  Contender stage(const Setup& setup);
  void open(const Setup& setup);
  std::string check_and_close(bool analysed);
  std::string check(const StageFeed& feed, bool analysed) const;

  Device& device_;
  const Work& work_;
  const double turn_;
  const std::atomic<int>* const stop_;
  FramePool sources_;
  const std::vector<PooledImage> frames_;
  std::vector<PlainImage> expected_;
  int most_feeds_ = 1;
  std::unique_ptr<FramePool[]> targets_;           // one for each feed, kept from turn to turn
  std::unique_ptr<GpuContenders> gpu_;             // null on the CPU
  std::vector<std::unique_ptr<BenchFeed>> feeds_;  // of this turn
  StageFigures figures_{};                         // of the last one
};

}  // namespace framelane::bench
