#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/measure/feed_stats.hpp"

namespace framelane {

/// What stopping a feed has cost it so far: the frames, the sound and the packets that were
/// dropped with the reason `stop` or `reload`. A snapshot; the loss of one stop is the difference
/// of two.
class StopLoss {
 public:
  explicit StopLoss(const FeedStats& stats);

  /// What was lost since `before`, and what may help, as text for the log; empty if nothing was.
  /// `drain_time` is the time that was not enough.
  std::string since(const StopLoss& before, std::chrono::milliseconds drain_time) const;

 private:
  std::uint64_t frames_ = 0;
  std::uint64_t sound_ = 0;  // packets that were to be transcoded
  struct OutputLoss {
    std::shared_ptr<const OutputStats> output;
    std::uint64_t packets;
  };
  std::vector<OutputLoss> outputs_;  // in their order
};

}  // namespace framelane
