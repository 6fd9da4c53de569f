#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/measure/flight_recorder.hpp"

namespace framelane {

/// What happened at a moment, to a feed, or, if that is empty, to all of framelane.
struct TraceMark {
  std::chrono::system_clock::time_point time;
  std::string feed;
  std::string name;
  std::string text;
};

/// Which part of what a recorder has a trace shows.
struct TraceSelection {
  std::chrono::seconds time{10};  ///< the last so many; what is older may be gone
  std::string feed{};             ///< empty: all feeds
  /// Feeds by the GPU that they run on, whose engines get tracks of their own: {"gate", "cuda:0"}.
  std::map<std::string, std::string> gpus{};
  std::vector<TraceMark> marks{};  ///< shown where they are within that time
};

/// Writes a trace in the JSON format that Perfetto and chrome://tracing read, piece by piece, to
/// `sink`. A process in the trace is a feed, or a GPU. A thread in it is one of the feed's threads,
/// or an engine of a lane or of the GPU. Marks are instants. Slices of one frame are joined by a
/// flow. The times count from the begin of the trace; `otherData` says when that was. Blocks while
/// it writes. Any thread.
void write_trace(const FlightRecorder& recorder, const TraceSelection& selection,
                 const std::function<void(std::string_view)>& sink);

}  // namespace framelane
