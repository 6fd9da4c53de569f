#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "daemon/feed_view.hpp"

namespace framelane {

/// The line that `systemctl status` shows of the daemon. One thread.
class StatusLine {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kEvery{10};

  /// "3 of 4 feeds up, 74.9 frames/s, 12 frames dropped". The rate is of the frames that came from
  /// the sources since the call before, and is left out in the first. Frames are dropped once in
  /// each encode, and counted since their feed was added. Feeds that only copy have no frames.
  std::string text(const std::vector<FeedView>& feeds, Clock::time_point now);
  /// To be called often: tells systemd the text every kEvery.
  void update(const std::vector<FeedView>& feeds, Clock::time_point now);

 private:
  std::map<std::string, std::uint64_t> frames_;  // of each feed, at the call before
  Clock::time_point last_;                       // the call before; the epoch: none
};

}  // namespace framelane
