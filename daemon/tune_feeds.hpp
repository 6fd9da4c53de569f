#pragma once

#include <string>
#include <vector>

#include "config/config.hpp"
#include "config/yaml_tree.hpp"
#include "kernels/conversion.hpp"

namespace framelane {

/// What `framelane tune` has to know of a feed.
struct TunedFeed {
  std::string name;
  /// Of each encode for which a picture is made; all have one source. None where `left_out` is set.
  std::vector<Conversion> conversions;
  Rational rate;
  std::string assumed;  ///< what the configuration does not tell; or empty
  /// smaller_source_advice, if the source is live and it holds whatever its size turns out to be;
  /// or empty.
  std::string advice;
  std::string left_out;  ///< why there is nothing to tune; or empty
};

/// The size and rate that are assumed for streams, because the configuration does not state them.
struct StreamShape {
  int width = 1920;
  int height = 1080;
  Rational rate{30, 1};
  bool size_is_stated = false;  ///< by the user, who knows it
};

/// What a feed converts, as it would find when it runs: encoders are opened to see what they take,
/// sources are not. A stream is taken for decoded 4:2:0, in the range in which more encodes
/// convert; in limited range if that makes no difference.
TunedFeed tuned_feed(const FeedOptions& feed, const StreamShape& streams);

/// Which of `lanes`, `ring` and `slices` the feed or its profile sets, so that `defaults` has no
/// effect on them. `root`: the whole file.
std::vector<std::string> own_settings(const Node& root, const std::string& feed);

/// {"device","feeds":[{"name","width","height","source","source_color":[matrix,range,siting],
/// "conversions":[{"target","target_color":[],"scaling":{"crop":[x,y,width,height],"target":[width,
/// height],"place":[],"filter","background":[r,g,b],"transposed","mirrored","upside_down"} or null,
/// "overlaid"}],"rate","assumed","advice","lanes","ring","slices","own":[]}],"left_out":[]}, where
/// slices 0 is auto and "own" is what own_settings gives: what framelane-bench reads. `root` is the
/// file that `config` was loaded from.
std::string tuned_feeds_json(const Config& config, const Node& root, const StreamShape& streams);

}  // namespace framelane
