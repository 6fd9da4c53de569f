#include "pipeline/feed/feed_options.hpp"

#include <algorithm>
#include <iterator>

namespace framelane {
namespace {

std::vector<OutputOptions> renditions(const FeedOptions& options) {
  std::vector<OutputOptions> result;
  std::ranges::copy_if(options.outputs, std::back_inserter(result),
                       [](const OutputOptions& output) { return !output.master.empty(); });
  return result;
}

}  // namespace

bool only_outputs_differ(const FeedOptions& a, const FeedOptions& b) {
  FeedOptions with_outputs_of_b = a;
  with_outputs_of_b.outputs = b.outputs;
  return with_outputs_of_b == b && renditions(a) == renditions(b);
}

bool blocks_when_full(OnFull on_full, bool live) {
  switch (on_full) {
    case OnFull::kBlock:
      return true;
    case OnFull::kDrop:
      return false;
    case OnFull::kAuto:
      break;
  }
  return !live;
}

}  // namespace framelane
