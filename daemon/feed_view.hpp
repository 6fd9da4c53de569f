#pragma once

#include <memory>

#include "pipeline/feed/feed_options.hpp"
#include "pipeline/measure/feed_stats.hpp"

namespace framelane {

/// A feed as the API and the metrics see it. Valid as long as it is held, also after the supervisor
/// is gone.
struct FeedView {
  std::shared_ptr<const FeedOptions> options;
  std::shared_ptr<const FeedStats> stats;
};

}  // namespace framelane
