#pragma once

#include <memory>
#include <vector>

#include "pipeline/measure/feed_stats.hpp"

namespace framelane::testing {

/// The ledger's lines of the encodes that take frames.
inline std::vector<std::shared_ptr<FeedStats::EncodeLine>> frame_lines(const FeedStats& stats) {
  std::vector<std::shared_ptr<FeedStats::EncodeLine>> lines;
  for (const FeedStats::EncodeLine& encode : stats.ledger().encodes) {
    if (!encode.stats->copy) lines.push_back(stats.line(encode.stats->name));
  }
  return lines;
}

}  // namespace framelane::testing
