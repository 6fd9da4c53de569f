#include "daemon/lane_timeline.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

namespace framelane {
namespace {

using Clock = FlightRecorder::Clock;

constexpr std::chrono::milliseconds kPart{10};
constexpr std::string_view kLane = "lane ";

using Parts = std::array<std::chrono::nanoseconds, LaneTimeline::kParts>;
using Engines = std::array<Parts, kEngineNames.size()>;

/// Adds the stretch to the parts in which it lies.
void spread(Parts& parts, std::chrono::nanoseconds begin, std::chrono::nanoseconds end) {
  constexpr std::chrono::nanoseconds kAll = kPart * LaneTimeline::kParts;
  begin = std::clamp(begin, std::chrono::nanoseconds(0), kAll);
  end = std::clamp(end, std::chrono::nanoseconds(0), kAll);
  while (begin < end) {
    const auto part = static_cast<std::size_t>(begin / kPart);
    const std::chrono::nanoseconds next =
        std::min<std::chrono::nanoseconds>(end, kPart * (static_cast<int>(part) + 1));
    parts[part] += next - begin;
    begin = next;
  }
}

std::string digits(const Parts& parts) {
  std::string text;
  for (const std::chrono::nanoseconds busy : parts) {
    // What is not nothing must show.
    const auto share = static_cast<std::size_t>(
        (busy.count() * 15 + kPart.count() * 1'000'000 - 1) / (kPart.count() * 1'000'000));
    text += "0123456789abcdef"[std::min<std::size_t>(share, 15)];
  }
  return text;
}

}  // namespace

std::vector<LaneTimeline> lane_timelines(const FlightRecorder& recorder, Clock::time_point now,
                                         std::size_t most) {
  const Clock::time_point since = now - kPart * LaneTimeline::kParts;
  std::map<std::uint32_t, Engines> lanes;
  recorder.visit(since, [&](const FlightRecorder::Record& record) {
    for (const Engine engine : {Engine::kH2d, Engine::kKernel, Engine::kD2h}) {
      if (record.kind != trace_kind(engine)) continue;
      spread(lanes[record.track][index_of(engine)], record.start - since,
             record.start + record.duration - since);
    }
  });
  const std::vector<TraceTrackName> tracks = recorder.tracks();
  std::vector<LaneTimeline> timelines;
  for (const auto& [track, engines] : lanes) {
    if (track >= tracks.size() || !tracks[track].name.starts_with(kLane)) continue;
    LaneTimeline timeline{.feed = tracks[track].feed, .engines = {}};
    const std::string& name = tracks[track].name;
    std::from_chars(name.data() + kLane.size(), name.data() + name.size(), timeline.lane);
    for (std::size_t i = 0; i < engines.size(); ++i) timeline.engines[i] = digits(engines[i]);
    timelines.push_back(std::move(timeline));
  }
  std::ranges::sort(timelines, {}, [](const LaneTimeline& t) { return std::pair(t.feed, t.lane); });
  if (timelines.size() > most) timelines.resize(most);
  return timelines;
}

}  // namespace framelane
