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

bool wants_audio(const FeedOptions& options) {
  return std::ranges::any_of(options.encodes, &EncodeOptions::wants_audio);
}

/// The encode whose frames are analysed; null if there is none.
const EncodeOptions* first_that_decodes(const FeedOptions& options) {
  const auto found = std::ranges::find(options.encodes, false, &EncodeOptions::copy_video);
  return found != options.encodes.end() ? &*found : nullptr;
}

bool can_change_encodes(const FeedOptions& a, const FeedOptions& b) {
  if (converts(a) != converts(b) || wants_audio(a) != wants_audio(b)) return false;
  if (a.analyse && converts(a)) {
    const EncodeOptions& analysed = *first_that_decodes(a);
    const EncodeOptions& next = *first_that_decodes(b);
    if (analysed.name != next.name || !can_become(analysed, next)) return false;
  }
  const std::vector<OutputOptions> kept = renditions(a);
  return std::ranges::all_of(a.encodes, [&](const EncodeOptions& old) {
    if (std::ranges::find(kept, old.name, &OutputOptions::from) == kept.end()) return true;
    const auto next = std::ranges::find(b.encodes, old.name, &EncodeOptions::name);
    return next != b.encodes.end() && differ_only_in_overlays(old, *next);
  });
}

}  // namespace

bool can_change_in_run(const FeedOptions& a, const FeedOptions& b) {
  FeedOptions changed = a;
  changed.outputs = b.outputs;
  changed.encodes = b.encodes;
  changed.input.mask = b.input.mask;
  changed.input.reconnect = b.input.reconnect;
  changed.on_full = b.on_full;
  return changed == b && std::ranges::equal(renditions(a), renditions(b), can_change_in_place) &&
         can_change_encodes(a, b);
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
