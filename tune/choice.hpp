// How `framelane tune` chooses, given the figures. No clocks, no threads, no devices.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace framelane::bench {

/// One value of a setting, and the time of a frame with it, in the same rounds as the other values.
struct Tried {
  int value;                    ///< slices: kAutoSlices is auto
  std::vector<double> samples;  ///< ms; empty: there was no room for it
};
inline constexpr int kAutoSlices = 0;

/// Of two contenders of the same rounds, how much longer the first takes: the median of the
/// rounds' ratios. Requires a round that both were in.
double times_longer(const std::vector<double>& samples, const std::vector<double>& than);

/// Whether `samples` are slower than `than`: by more than kSameTime in the median, and slower at
/// all in more than `share` of the rounds.
bool is_slower(const std::vector<double>& samples, const std::vector<double>& than, double share);
inline constexpr double kMostRounds = 0.75;

struct Pick {
  enum class Why {
    kDefault,  ///< as good as any
    kPresent,  ///< as good as any, and set already
    kFewest,   ///< the fewest that are as good as any
    kOnlyOne,  ///< nothing was measured, or nothing else
  };
  int value;
  Why why = Why::kOnlyOne;
  int best = 0;               ///< the fastest value
  double longer = 1;          ///< time of a frame with `value`, divided by that with `best`
  double default_longer = 1;  ///< the same with the default; 1 where that was not measured
};

/// The value to recommend. Of the values that the noise cannot tell from the best: the one that is
/// set already; else the default (`usual`); else the fewest. The default counts as worse than the
/// best only if it loses nine rounds of ten, other values three of four. So a second run repeats
/// the first one's answer, set or not. `tried` is in ascending order.
Pick pick(std::span<const Tried> tried, int usual, std::optional<int> present);

/// How one contender fares among others of the same rounds.
struct Standing {
  std::size_t best;  ///< the fastest in the rounds of both; itself if none is faster
  double longer;     ///< its time, divided by that of `best`
  bool is_as_good;   ///< no longer than kSameTime
};
/// Samples of each, where there are any. Requires those of `own`.
Standing standing(std::span<const std::vector<double>> samples, std::size_t own);

/// What the feeds of one kind need, and what there is.
struct Needs {
  double frames_per_second;      ///< that the device has been seen to do
  double rate;                   ///< frames a second of one feed
  std::size_t device_bytes = 0;  ///< of a GPU's memory, for one feed; 0: none
  std::size_t device_free = 0;
  std::size_t host_bytes = 0;  ///< of the machine's memory, for one feed
  std::size_t host_free = 0;
};
struct Ceiling {
  enum class Bound { kFrames, kDeviceMemory, kHostMemory };
  int feeds = 0;  ///< that run at once at their rate
  Bound bound = Bound::kFrames;
};
Ceiling ceiling_of(const Needs& needs);

/// How much of a device's time feeds need: 1 is all of it. `frames_per_second`: of their kind.
struct Share {
  double needed;             ///< frames a second
  double frames_per_second;  ///< that the device does; 0: it cannot be had
};
enum class Chosen { kOnGpu, kOnCpu, kNeither };
/// The GPU if all feeds leave a tenth of it free, since the CPU has to decode and encode them.
/// Otherwise the device that is less loaded by all feeds. The one that is set already (kNeither:
/// none is) stays if it is about as good: the GPU as long as it carries all feeds, the CPU until a
/// fifth of the GPU would be free, and either of them where their loads differ by less than
/// kSameTime.
Chosen choose_device(std::span<const Share> gpu, std::span<const Share> cpu,
                     Chosen present = Chosen::kNeither);
double load(std::span<const Share> shares);

/// The settings of one feed.
struct Settings {
  int lanes = 0;
  int ring = 0;
  int slices = kAutoSlices;
  friend bool operator==(const Settings&, const Settings&) = default;
};
/// What a feed or its profile sets by itself, so that `defaults` has no effect on it.
struct OwnSettings {
  std::optional<int> lanes = {}, ring = {}, slices = {};
};
struct NamedSettings {
  std::string feed;
  Settings settings;
  OwnSettings own = {};
};
/// What most feeds have in common, which belongs under `defaults`; the earliest of those that are
/// equally many. Requires feeds.
Settings common(std::span<const NamedSettings> feeds);
/// The lines to set in a configuration: `device`, what is common under `defaults`, and under the
/// feeds what they would otherwise not get.
std::string as_yaml(const std::string& device, std::span<const NamedSettings> feeds);
std::string slices_text(int slices);

}  // namespace framelane::bench
