#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/base/labels.hpp"
#include "pipeline/measure/feed_stats.hpp"

namespace framelane {

/// What one output of the configuration counts. An output with several encodes has OutputStats for
/// each of its renditions, all with its name: these are their sums.
struct OutputTotals {
  std::string name;
  bool up = true;       ///< all are
  bool paused = false;  ///< any is
  /// Of the rendition that is worst off: failed, before backoff, connecting, running, ended.
  FeedState state = FeedState::kEnded;
  std::string reason{};
  FaultCount faults{};  ///< of all of them; the code and what follows are of the last
  std::string retention_reason{};
  std::uint64_t bytes = 0;
  std::uint64_t queue_packets = 0;
  std::array<std::uint64_t, kPacketDropNames.size()> packets_dropped{};
  /// Of these: its queue was full, writing failed, or they depend on such. The first ones of a
  /// source, before a keyframe, and those of a stop are no loss.
  std::uint64_t packets_lost = 0;
  std::array<std::uint64_t, kIoFaultNames.size()> reconnects{};
  std::array<std::uint64_t, kRetentionFaultNames.size()> retention_faults{};
};

/// One for each output of the configuration, in their order. Any thread.
std::vector<OutputTotals> output_totals(const FeedStats& stats);

}  // namespace framelane
