#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "pipeline/measure/flight_recorder.hpp"

namespace framelane {

/// Which part of what a recorder has a trace shows.
struct TraceSelection {
  std::chrono::seconds time{10};  ///< the last so many; what is older may be gone
  std::string feed{};             ///< empty: all feeds
  /// Feeds by the GPU that they run on, whose engines get tracks of their own: {"gate", "cuda:0"}.
  std::map<std::string, std::string> gpus{};
};

/// Writes a trace in the JSON format that Perfetto and chrome://tracing read, piece by piece, to
/// `sink`. A process in the trace is a feed, or a GPU. A thread in it is one of the feed's threads,
/// or an engine of a lane or of the GPU. Slices of one frame are joined by a flow. The times count
/// from the begin of the trace; `otherData` says when that was. Blocks while it writes. Any thread.
void write_trace(const FlightRecorder& recorder, const TraceSelection& selection,
                 const std::function<void(std::string_view)>& sink);

}  // namespace framelane
