// `framelane tune`: measures which settings suit the feeds of a configuration on this machine.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/harness/result.hpp"
#include "bench/harness/turns.hpp"
#include "kernels/conversion.hpp"
#include "tune/choice.hpp"

namespace framelane::bench {

/// Feeds with the same kind of frames, of which the same is made.
struct FeedKind {
  std::vector<std::string> names;  ///< none: a size that was stated, without a configuration
  std::vector<OwnSettings> own;    ///< of each name, or empty
  int feeds = 1;
  std::vector<Conversion> conversions;  ///< of each frame, for one encode each; none is_bypass
  double rate = 0;                      ///< frames a second of one feed
  std::optional<Settings> present;  ///< what the first of them has now, and all in ring and slices
  std::string assumed;              ///< what of this the configuration does not tell; or empty
  std::string advice = {};          ///< why its source is larger than needed; or empty
};
/// "1920x1080 bgra to nv12, 59.94 frames/s"
std::string describe(const FeedKind& kind);

struct TunedKind {
  FeedKind kind;
  Settings settings;
  std::string lanes_reason, ring_reason, slices_reason;
  Ceiling ceiling;
  std::string ceiling_reason;
  double frames_per_second = 0;  ///< of feeds together, with these settings
};

struct Tuning {
  Result measured;  ///< everything, with what was wrong and what was left out
  std::string device;
  std::string device_reason;
  std::vector<TunedKind> kinds;  ///< none: nothing is recommended
  double load = 0;               ///< the share of the device's time that the feeds need
};

/// Measures for about session.seconds. Recommends nothing after a stop, after a wrong result, or if
/// no device can do the work; `measured` says which. `gpu_alone`: the CPU must not be recommended;
/// requires session.gpu. `present`: the device that is set already, if it is one of the session's.
/// One thread.
Tuning tune(const Session& session, bool gpu_alone, std::span<const FeedKind> kinds,
            Chosen present = Chosen::kNeither);

/// Measures every combination of lanes and places in the ring that may be recommended, on a GPU
/// with several counts of slices, by frames a second, for session.seconds for each kind. Then it
/// measures the best few again, beside the recommended one. The latency of a single frame is not
/// checked. Adds a sentence for each kind to the verdict of `tuning.measured`, and a problem where
/// the recommended setting is more than 2 % slower. Requires a recommendation.
void check_tuning(const Session& session, Tuning& tuning);

/// The settings of each feed. Without names of feeds, one entry for all.
std::vector<NamedSettings> settings_of(const Tuning& tuning);

/// A table with the reasons and the keys, for a terminal.
std::string as_text(const Tuning& tuning);
/// {"device","device_reason","load","kinds":[{"feeds":[],"count","size","formats","rate","encodes",
/// "assumed","advice","lanes","ring","slices","lanes_reason","ring_reason","slices_reason","ceiling_feeds",
/// "ceiling_reason","frames_per_second"}],"measured":{a suite of as_json}}
std::string as_json(const Tuning& tuning);

/// The feeds of a configuration, as `framelane tune-feeds` gives them.
struct ConfiguredFeeds {
  std::string device;  ///< as it is set
  std::vector<FeedKind> kinds;
  std::vector<std::string> left_out;
};
/// Throws std::runtime_error, which says what is wrong, if it is not such a text.
ConfiguredFeeds configured_feeds(const std::string& json);

}  // namespace framelane::bench
