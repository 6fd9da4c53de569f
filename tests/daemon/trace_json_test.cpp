// Not built for ThreadSanitizer: what it tests has one thread.
#include "daemon/trace_json.hpp"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

namespace framelane {
namespace {

using namespace std::chrono_literals;

TEST(TraceJsonTest, EnginesOfAGpuAreThreadsThatAreNamedOnceHoweverManyLanesItHas) {
  const auto recorder = std::make_shared<FlightRecorder>(64 * 1024);
  const auto now = FlightRecorder::Clock::now();
  const TraceTrack lanes[] = {
      {recorder, "gate", "lane 0"}, {recorder, "gate", "lane 1"}, {recorder, "yard", "lane 0"}};
  auto start = now - 3s;
  for (const TraceTrack& lane : lanes) {
    lane.slice(TraceKind::kH2d, start, start + 1ms, 40);
    lane.slice(TraceKind::kD2h, start + 1ms, start + 2ms, 40);
    start += 10ms;
  }
  TraceSelection selection;
  selection.gpus = {{"gate", "cuda:0"}, {"yard", "cuda:0"}};
  std::string text;
  write_trace(*recorder, selection, [&](std::string_view piece) { text += piece; });
  std::map<int, std::string> processes;
  std::map<std::pair<int, int>, std::string> threads;
  std::map<std::string, int> slices;  // of the GPU, by the thread
  const auto root = nlohmann::json::parse(text);
  for (const auto& event : root["traceEvents"]) {
    const int process = event["pid"];
    if (event["name"] == "process_name") {
      EXPECT_TRUE(processes.try_emplace(process, event["args"]["name"]).second) << event;
    } else if (event["name"] == "thread_name") {
      const std::pair thread(process, event["tid"].get<int>());
      EXPECT_TRUE(threads.try_emplace(thread, event["args"]["name"]).second) << event;
    } else if (event["ph"] == "X" && processes[process] == "cuda:0") {
      ++slices[threads[{process, event["tid"].get<int>()}]];
    }
  }
  EXPECT_EQ(slices, (std::map<std::string, int>{{"h2d", 3}, {"d2h", 3}}));
}

}  // namespace
}  // namespace framelane
