#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "pipeline/base/labels.hpp"
#include "pipeline/measure/feed_stats.hpp"
#include "pipeline/measure/histogram.hpp"

namespace framelane {

/// True if a frame that is dropped for this reason is lost by a fault, and not because somebody
/// wanted it so.
bool is_loss(DropReason reason);

/// What a feed has counted at a moment, over all of its encodes and outputs.
struct FeedCounts {
  std::chrono::steady_clock::time_point at;
  bool decodes = false;  ///< if not, there are no frames to count
  std::uint64_t frames_in = 0;
  std::uint64_t frames_out = 0;
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
  std::array<std::uint64_t, kDropReasonNames.size()> dropped{};
  std::array<std::uint64_t, Histogram::kBounds.size() + 1> latency{};  ///< Histogram::Snapshot
  std::vector<std::uint64_t> encode_frames{};  ///< out, in the configuration's order
  std::vector<std::uint64_t> output_bytes{};   ///< likewise
  /// Likewise: how often each output was lost, and OutputTotals::packets_lost.
  std::vector<std::uint64_t> output_losses{};
  std::vector<std::uint64_t> output_packets_lost{};

  /// Frames: the sum of `dropped` where is_loss() says so.
  std::uint64_t lost() const;
};
FeedCounts counts_of(const FeedStats& stats, std::chrono::steady_clock::time_point now);

/// What a feed has counted in the last minutes, from counts that are taken once a second. One
/// thread.
class FeedHistory {
 public:
  static constexpr std::chrono::seconds kRateTime{5};      ///< over which rates are taken
  static constexpr std::chrono::seconds kRecentTime{10};   ///< of "recently"
  static constexpr std::chrono::seconds kLatencyTime{60};  ///< of percentiles
  static constexpr std::chrono::seconds kTroubleTime{60};  ///< of what outputs have lost
  static constexpr std::chrono::seconds kInterval{5};      ///< of points
  static constexpr std::size_t kPoints = 120;              ///< ten minutes

  /// Rates are per second, and nothing before the second sample. A feed that only copies has none
  /// of frames.
  struct Point {
    std::optional<double> fps_in;
    std::optional<double> fps_out;
    std::optional<double> bits;  ///< from the source
    std::uint64_t lost = 0;      ///< frames, since the point before
  };

  /// Counts that have become less (the feed has another shape) begin a new history of rates.
  void add(FeedCounts counts);

  /// The newest counts. At least one must have been added.
  const FeedCounts& latest() const { return seconds_.back(); }
  std::optional<double> rate(std::uint64_t FeedCounts::*count) const;
  /// Of one encode or output; `index` is that of the configuration.
  std::optional<double> rate(std::vector<std::uint64_t> FeedCounts::*counts,
                             std::size_t index) const;
  std::uint64_t lost_recently() const;
  /// How often an output was lost; `index` is that of the configuration.
  std::uint64_t output_losses_recently(std::size_t index) const;
  /// Of OutputTotals::packets_lost; likewise.
  std::uint64_t packets_lost_recently(std::size_t index) const;
  /// In seconds, interpolated inside a bucket; nothing if no frame came out. `share`: 0.99.
  std::optional<double> latency(double share) const;
  /// Oldest first.
  const std::deque<Point>& points() const { return points_; }

 private:
  /// In kTroubleTime, of one output.
  std::uint64_t rise(std::vector<std::uint64_t> FeedCounts::*counts, std::size_t index) const;
  /// The newest counts that are at least so old; the oldest if there are none.
  const FeedCounts& before(std::chrono::seconds time) const;

  std::deque<FeedCounts> seconds_;  // of kLatencyTime
  std::optional<FeedCounts> at_point_;
  std::deque<Point> points_;
};

}  // namespace framelane
