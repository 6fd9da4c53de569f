// A piece of work for the daemon's own stage: what is made of frames of one format, and the ways to
// do it, which take turns. The suite `stage` and `framelane tune` measure it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/product/stage_feed.hpp"
#include "bench/product/stage_frames.hpp"

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

/// What is made of one frame: "size" is the frame's, and "formats" is formats_of.
std::vector<Parameter> parameters_of(std::span<const Conversion> conversions);
std::vector<Parameter> parameters_of(std::span<const Conversion> conversions, const Setup& setup);

/// What is made of frames, and what is tried with it.
struct Work {
  std::vector<Conversion> conversions;  ///< of each frame; one at least, all with one source
  std::vector<Setup> setups;
  int ceilings = 0;
  bool with_others = false;  ///< on a GPU, also measure single parts and the usual ways
};
/// True if the usual ways can do this: one picture, of the frame's size.
bool has_usual_ways(const Work& work);

/// Bytes of one frame before it is converted.
double source_bytes(std::span<const Conversion> conversions);
/// How many frames go round: more than caches hold, as far as a machine with so much memory can
/// spare it. Where sizes change they are fewer: computing takes far longer than reading then, and
/// the exact results longer still. The number has no divisor in common with any number of lanes, so
/// that each lane gets every frame in turn. A lane that always got the same frame could miss an
/// upload, and its result would be right all the same.
int frames_of(const Work& work, std::size_t memory);
/// Bytes of these frames, together with their exact results.
std::size_t frame_bytes(const Work& work, std::size_t memory);
/// Bytes of the results that the feeds of a setup may hold at once.
std::size_t target_bytes(std::span<const Conversion> conversions, const Setup& setup);
/// Bytes of a GPU's memory that one feed's conversions need; 0 without the CUDA backend.
std::size_t device_bytes(std::span<const Conversion> conversions, int lanes);
/// Requires a GPU. Throws CudaError.
std::size_t free_device_bytes(const Session& session);
/// Removes the setups whose results need more than a quarter of the machine's memory.
void drop_the_largest(const Session& session, Work& work, Result& result);

class GpuContenders;

/// A work's frames, their exact results, and the contenders. One thread. Throws what CUDA and the
/// stage throw.
class StageWork {
 public:
  /// `session` and `work` must outlive this. `turn`: seconds. `frames`: of the same conversions, to
  /// be used instead of new ones.
  StageWork(const Session& session, const Work& work, double turn,
            std::shared_ptr<StageFrames> frames = nullptr);
  ~StageWork();

  /// All contenders: on a GPU first the bus's ceilings, then the setups. With with_others also each
  /// single part of the work and the usual ways. They refer to this object.
  std::vector<Contender> contenders();
  /// The setups alone.
  std::vector<Contender> setups();
  /// The kernels alone. Requires a GPU.
  Contender kernels();
  static constexpr int kParts = 2;      ///< how many contenders with_others adds
  static constexpr int kUsualWays = 3;  ///< and more if has_usual_ways

 private:
  Contender stage(const Setup& setup);
  void open(const Setup& setup);
  std::string check_and_close(bool analysed);
  std::string check(const StageFeed& feed, bool analysed) const;
  std::string check(const StageFeed::FrameResult& result, bool analysed) const;

  Device& device_;
  const Work& work_;
  const double turn_;
  const std::atomic<int>* const stop_;
  const std::shared_ptr<StageFrames> made_;
  std::span<const PooledImage> frames_;            // of these, as many as the work needs
  std::unique_ptr<FramePool[]> targets_;           // by feed and conversion; kept from turn to turn
  std::unique_ptr<GpuContenders> gpu_;             // null on the CPU
  std::vector<std::unique_ptr<BenchFeed>> feeds_;  // of this turn
  StageFigures figures_{};                         // of the last one
};

}  // namespace framelane::bench
