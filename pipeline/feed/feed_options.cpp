#include "pipeline/feed/feed_options.hpp"

#include <algorithm>
#include <cstddef>
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

bool can_change_in_run(const FeedOptions& a, const FeedOptions& b) {
  FeedOptions changed = a;
  changed.outputs = b.outputs;
  changed.input.mask = b.input.mask;
  for (std::size_t i = 0; i < std::min(a.encodes.size(), b.encodes.size()); ++i) {
    changed.encodes[i].overlays = b.encodes[i].overlays;
  }
  return changed == b && renditions(a) == renditions(b);
}

bool converts(const FeedOptions& options) {
  return std::ranges::any_of(options.encodes,
                             [](const EncodeOptions& encode) { return !encode.copy_video; });
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
