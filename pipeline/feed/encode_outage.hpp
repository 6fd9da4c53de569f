#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "pipeline/base/backoff.hpp"
#include "pipeline/base/fault_log.hpp"
#include "pipeline/measure/feed_stats.hpp"

namespace framelane {

/// While an encode's encoder cannot be opened, that encode alone is down: this logs and shows why,
/// and says when to try again. One thread; `stats` outlives it.
class EncodeOutage {
 public:
  using Clock = std::chrono::steady_clock;

  EncodeOutage(std::string_view feed, EncodeStats& stats);

  bool down() const { return next_try_.has_value(); }
  /// True if the encode is down and it is time to try again.
  bool due(Clock::time_point now) const { return next_try_ && now >= *next_try_; }
  /// The encoder could not be opened, for this reason.
  void failed(std::string reason, Clock::time_point now);
  /// The encoder is open; `codec` is its name.
  void opened(std::string_view codec);
  /// The encode is not down and takes a frame.
  void worked(Clock::time_point now) {
    if (has_failed_) backoff_.succeeded(now);
  }

 private:
  EncodeStats& stats_;
  FaultLog faults_;
  Backoff backoff_;
  bool has_failed_ = false;
  std::optional<Clock::time_point> next_try_;  // empty: not down
};

}  // namespace framelane
