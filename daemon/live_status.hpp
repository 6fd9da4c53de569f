#pragma once

#include <chrono>
#include <map>
#include <string>

#include "daemon/feed_history.hpp"
#include "daemon/supervisor.hpp"

namespace framelane {

/// What the status page shows, as JSON: the states and rates of all feeds and devices.
/// docs/http-api.md has the form. One thread.
class LiveStatus {
 public:
  using Clock = std::chrono::steady_clock;
  /// Lanes that are shown in all. 64 feeds have more, and nobody could read them.
  static constexpr std::size_t kMostLanes = 48;

  /// The supervisor outlives this.
  explicit LiveStatus(const Supervisor& supervisor);

  /// Counts what has come since the last call. To be called once a second, also while nobody looks.
  void sample(Clock::time_point now);
  /// As of the last sample, which there must be.
  std::string status_json(Clock::time_point now) const;
  std::string history_json() const;

 private:
  const Supervisor& supervisor_;
  const Clock::time_point started_;
  const std::string host_;
  std::vector<FeedView> feeds_;  // as of the last sample
  std::map<std::string, FeedHistory> histories_;
};

}  // namespace framelane
