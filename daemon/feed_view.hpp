#pragma once

#include <chrono>
#include <memory>

#include "pipeline/feed/feed_options.hpp"
#include "pipeline/measure/feed_stats.hpp"
#include "pipeline/packets/snapshot_tap.hpp"
#include "pipeline/stage/device.hpp"

namespace framelane {

/// A feed as the API and the metrics see it. Valid as long as it is held, also after the supervisor
/// is gone.
struct FeedView {
  std::shared_ptr<const FeedOptions> options;
  std::shared_ptr<const FeedStats> stats;
  std::shared_ptr<SnapshotTap> tap{};      ///< of the present run
  std::shared_ptr<const Device> device{};  ///< where it converts; null before its first run
};

/// True if the feed runs and something has come within its input's timeout.
inline bool is_up(const FeedView& feed, std::chrono::steady_clock::time_point now) {
  return feed.stats->status().state == FeedState::kRunning &&
         feed.stats->since_arrival(now) < feed.options->input.timeout;
}

}  // namespace framelane
