#pragma once

#include <array>
#include <string>
#include <vector>

#include "pipeline/base/labels.hpp"
#include "pipeline/measure/flight_recorder.hpp"

namespace framelane {

/// What a lane did in the last second, in kParts parts of 10 ms: each is a hexadecimal digit, the
/// share of the part in which the engine worked for the lane, from 0 to f.
struct LaneTimeline {
  static constexpr int kParts = 100;
  std::string feed;
  int lane = 0;
  std::array<std::string, kEngineNames.size()> engines;
};

/// Of the lanes that did anything, in the order of feeds and lanes, at most `most`. Any thread.
std::vector<LaneTimeline> lane_timelines(const FlightRecorder& recorder,
                                         FlightRecorder::Clock::time_point now, std::size_t most);

}  // namespace framelane
