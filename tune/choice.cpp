#include "tune/choice.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "bench/harness/result.hpp"

namespace framelane::bench {
namespace {

/// The ratios round by round. A contender that was stopped has fewer rounds.
std::vector<double> ratios(const std::vector<double>& samples, const std::vector<double>& than) {
  std::vector<double> result;
  for (std::size_t i = 0; i < std::min(samples.size(), than.size()); ++i) {
    result.push_back(samples[i] / than[i]);
  }
  return result;
}

/// How many feeds have room. `bytes` 0: there is no limit.
int room_for(std::size_t bytes, std::size_t free) {
  constexpr auto kMost = static_cast<std::size_t>(std::numeric_limits<int>::max());
  return static_cast<int>(bytes == 0 ? kMost : std::min(free / bytes, kMost));
}

}  // namespace

double times_longer(const std::vector<double>& samples, const std::vector<double>& than) {
  return percentile(ratios(samples, than), 0.5);
}

bool is_slower(const std::vector<double>& samples, const std::vector<double>& than, double share) {
  const std::vector<double> longer = ratios(samples, than);
  return percentile(longer, 0.5) > kSameTime && percentile(longer, 1 - share) > 1;
}

Pick pick(std::span<const Tried> tried, int usual, std::optional<int> present) {
  const Tried* best = nullptr;
  for (const Tried& one : tried) {
    if (one.samples.empty()) continue;
    if (best == nullptr || percentile(one.samples, 0.5) < percentile(best->samples, 0.5)) {
      best = &one;
    }
  }
  if (best == nullptr) return {.value = usual, .best = usual};
  const auto find = [&](int value) -> const Tried* {
    const auto found = std::ranges::find(tried, value, &Tried::value);
    return found == tried.end() || found->samples.empty() ? nullptr : &*found;
  };
  const auto is_good = [&](const Tried* one) {
    constexpr double kNearlyAll = 0.9;
    return one != nullptr &&
           !is_slower(one->samples, best->samples, one->value == usual ? kNearlyAll : kMostRounds);
  };
  const Tried* const usual_one = find(usual);
  const auto picked = [&](const Tried& one, Pick::Why why) {
    return Pick{one.value, why, best->value, times_longer(one.samples, best->samples),
                usual_one != nullptr ? times_longer(usual_one->samples, best->samples) : 1};
  };
  const Tried& fewest =
      *std::ranges::find_if(tried, [&](const Tried& one) { return is_good(find(one.value)); });
  const bool is_usual = is_good(usual_one);
  const Tried& wanted = is_usual ? *usual_one : fewest;
  const Tried* const present_one = present ? find(*present) : nullptr;
  if (is_good(present_one) && !(is_usual && *present == usual)) {
    return picked(*present_one, Pick::Why::kPresent);
  }
  return picked(wanted, is_usual ? Pick::Why::kDefault : Pick::Why::kFewest);
}

Standing standing(std::span<const std::vector<double>> samples, std::size_t own) {
  Standing found{own, 1, true};
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (i == own || samples[i].empty()) continue;
    const double longer = times_longer(samples[own], samples[i]);
    if (longer > found.longer) found = {i, longer, longer <= kSameTime};
  }
  return found;
}

Ceiling ceiling_of(const Needs& needs) {
  const double by_frames = std::floor(needs.frames_per_second / needs.rate);
  Ceiling result{static_cast<int>(std::min(by_frames, double{std::numeric_limits<int>::max()})),
                 Ceiling::Bound::kFrames};
  const int in_device = room_for(needs.device_bytes, needs.device_free);
  const int in_host = room_for(needs.host_bytes, needs.host_free);
  if (in_device < result.feeds) result = {in_device, Ceiling::Bound::kDeviceMemory};
  if (in_host < result.feeds) result = {in_host, Ceiling::Bound::kHostMemory};
  return result;
}

double load(std::span<const Share> shares) {
  double sum = 0;
  for (const Share& share : shares) {
    if (share.frames_per_second <= 0) return std::numeric_limits<double>::infinity();
    sum += share.needed / share.frames_per_second;
  }
  return sum;
}

Chosen choose_device(std::span<const Share> gpu, std::span<const Share> cpu, Chosen present) {
  const bool no_gpu = gpu.empty() || std::isinf(load(gpu));
  const bool no_cpu = cpu.empty() || std::isinf(load(cpu));
  if (no_gpu) return no_cpu ? Chosen::kNeither : Chosen::kOnCpu;
  if (no_cpu) return Chosen::kOnGpu;
  const double carried = present == Chosen::kOnGpu ? 1 : present == Chosen::kOnCpu ? 0.8 : 0.9;
  if (load(gpu) <= carried) return Chosen::kOnGpu;
  if (present == Chosen::kOnGpu && load(gpu) <= kSameTime * load(cpu)) return present;
  if (present == Chosen::kOnCpu && load(cpu) <= kSameTime * load(gpu)) return present;
  return load(gpu) <= load(cpu) ? Chosen::kOnGpu : Chosen::kOnCpu;
}

Settings common(std::span<const NamedSettings> feeds) {
  const auto count = [&](const Settings& settings) {
    return std::ranges::count(feeds, settings, &NamedSettings::settings);
  };
  const NamedSettings* most = &feeds.front();
  for (const NamedSettings& feed : feeds) {
    if (count(feed.settings) > count(most->settings)) most = &feed;
  }
  return most->settings;
}

std::string slices_text(int slices) {
  return slices == kAutoSlices ? "auto" : std::to_string(slices);
}

std::string as_yaml(const std::string& device, std::span<const NamedSettings> feeds) {
  const Settings usual = common(feeds);
  std::string text = fmt::format("device: {}\ndefaults:\n  lanes: {}\n  ring: {}\n  slices: {}\n",
                                 device, usual.lanes, usual.ring, slices_text(usual.slices));
  bool first = true;
  for (const auto& [feed, wanted, own] : feeds) {
    std::string lines;
    if (own.lanes.value_or(usual.lanes) != wanted.lanes) {
      lines += fmt::format("    lanes: {}\n", wanted.lanes);
    }
    if (own.ring.value_or(usual.ring) != wanted.ring) {
      lines += fmt::format("    ring: {}\n", wanted.ring);
    }
    if (own.slices.value_or(usual.slices) != wanted.slices) {
      lines += fmt::format("    slices: {}\n", slices_text(wanted.slices));
    }
    if (lines.empty()) continue;
    if (first) text += "feeds:\n";
    first = false;
    text.append("  ").append(feed).append(":\n").append(lines);
  }
  return text;
}

}  // namespace framelane::bench
