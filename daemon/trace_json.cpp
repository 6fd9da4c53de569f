#include "daemon/trace_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "daemon/json_text.hpp"
#include "daemon/version.hpp"
#include "pipeline/base/labels.hpp"
#include "pipeline/base/utc_time.hpp"

namespace framelane {
namespace {

using Clock = FlightRecorder::Clock;
using Record = FlightRecorder::Record;

constexpr std::size_t kPiece = 64 * 1024;
constexpr std::array kEngineKinds{TraceKind::kH2d, TraceKind::kKernel, TraceKind::kD2h};

std::string_view name_of(TraceKind kind) { return kTraceKindNames[static_cast<std::size_t>(kind)]; }

std::optional<Engine> engine_of(TraceKind kind) {
  const auto found = std::ranges::find(kEngineKinds, kind);
  if (found == kEngineKinds.end()) return std::nullopt;
  return static_cast<Engine>(found - kEngineKinds.begin());
}

/// Numbers of processes and threads begin with 1, since 0 stands for the system's idle one.
class TraceWriter {
 public:
  TraceWriter(const TraceSelection& selection, std::vector<TraceTrackName> tracks,
              Clock::time_point begin, std::chrono::system_clock::time_point wall_begin,
              const std::function<void(std::string_view)>& sink)
      : tracks_(std::move(tracks)), begin_(begin), sink_(sink) {
    for (std::uint32_t i = 0; i < tracks_.size(); ++i) {
      const std::string& feed = tracks_[i].feed;
      if (!selection.feed.empty() && feed != selection.feed) {
        places_.push_back({});
        continue;
      }
      const auto gpu = selection.gpus.find(feed);
      places_.push_back(
          {process("feed " + feed), gpu != selection.gpus.end() ? process(gpu->second) : 0});
    }
    for (const TraceMark& mark : selection.marks) {
      const bool shown = selection.feed.empty() || mark.feed.empty() || mark.feed == selection.feed;
      if (!shown || mark.time < wall_begin) continue;
      marks_.push_back({mark, mark.time - wall_begin,
                        process(mark.feed.empty() ? "framelane" : "feed " + mark.feed)});
    }
  }

  void write_names() {
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      begin_event();
      append(R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":{}}}}})", i + 1,
             json_text(processes_[i]));
    }
    std::set<std::size_t> gpus;
    for (std::size_t i = 0; i < tracks_.size(); ++i) {
      const Place& place = places_[i];
      if (place.process == 0) continue;
      const bool lane = tracks_[i].name.starts_with("lane ");
      if (!lane) {
        write_thread(place.process, thread_of(i), tracks_[i].name);
        continue;
      }
      for (const TraceKind kind : kEngineKinds) {
        const Engine engine = *engine_of(kind);
        if (place.gpu == 0 && engine != Engine::kKernel) continue;
        write_thread(place.process, thread_of(i, engine),
                     fmt::format("{} {}", tracks_[i].name, name_of(kind)));
      }
      if (place.gpu != 0) gpus.insert(place.gpu);
    }
    for (const std::size_t gpu : gpus) {
      for (const TraceKind kind : kEngineKinds) {
        write_thread(gpu, gpu_thread(*engine_of(kind)), std::string(name_of(kind)));
      }
    }
  }

  void write_marks() {
    const std::uint64_t thread = thread_of(tracks_.size());
    std::set<std::size_t> named;
    for (const Mark& mark : marks_) {
      if (named.insert(mark.process).second) write_thread(mark.process, thread, "incidents");
      begin_event();
      append(R"({{"ph":"i","s":"{}","name":{},"pid":{},"tid":{},"ts":{},"args":{{"text":{}}}}})",
             mark.mark.feed.empty() ? "g" : "p", json_text(mark.mark.name), mark.process, thread,
             microseconds(mark.after), json_text(mark.mark.text));
    }
  }

  void write(const Record& record) {
    if (record.track >= places_.size()) return;  // a track that is newer than the trace
    const Place& place = places_[record.track];
    if (place.process == 0) return;
    const std::optional<Engine> engine = engine_of(record.kind);
    const std::uint64_t thread =
        engine ? thread_of(record.track, *engine) : thread_of(record.track);
    write_slice(record, place.process, thread, place.process);
    if (engine && place.gpu != 0) write_slice(record, place.gpu, gpu_thread(*engine), 0);
  }

  void flush() {
    sink_({text_.data(), text_.size()});
    text_.clear();
  }

  template <typename... T>
  void append(fmt::format_string<T...> format, T&&... arguments) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<T>(arguments)...);
    if (text_.size() >= kPiece) flush();
  }

 private:
  /// Of a track. 0: it is not shown; it is on no GPU.
  struct Place {
    std::size_t process = 0;
    std::size_t gpu = 0;
  };

  struct Mark {
    TraceMark mark;
    std::chrono::nanoseconds after;  // the begin of the trace
    std::size_t process = 0;
  };

  std::size_t process(const std::string& name) {
    const auto found = std::ranges::find(processes_, name);
    if (found != processes_.end()) return static_cast<std::size_t>(found - processes_.begin()) + 1;
    processes_.push_back(name);
    return processes_.size();
  }
  static std::uint64_t thread_of(std::size_t track) { return 4 * track + 1; }
  static std::uint64_t thread_of(std::size_t track, Engine engine) {
    return 4 * track + 2 + index_of(engine);
  }
  std::uint64_t gpu_thread(Engine engine) const { return thread_of(tracks_.size(), engine); }

  void begin_event() {
    if (std::exchange(has_events_, true)) append(",\n");
  }

  void write_thread(std::size_t process, std::uint64_t thread, const std::string& name) {
    begin_event();
    append(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}}}})", process,
           thread, json_text(name));
    begin_event();
    append(
        R"({{"ph":"M","name":"thread_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}}}})",
        process, thread, thread);
  }

  /// `flow_process`: of the frame's feed; 0: no flow.
  void write_slice(const Record& record, std::size_t process, std::uint64_t thread,
                   std::size_t flow_process) {
    const Clock::time_point start = std::max(record.start, begin_);
    begin_event();
    append(R"({{"ph":"X","name":"{}","pid":{},"tid":{},"ts":{},"dur":{})", name_of(record.kind),
           process, thread, microseconds(start - begin_),
           microseconds(record.start + record.duration - start));
    if (record.frame != FlightRecorder::kNoFrame) {
      if (flow_process != 0) {
        // The packet begins the flow.
        append(R"(,"bind_id":"{:#x}",{}"flow_out":true)", flow_of(flow_process, record.frame),
               record.kind == TraceKind::kPacket ? "" : R"("flow_in":true,)");
      }
      append(R"(,"args":{{"frame_time_us":{}{}}})", record.frame, drop_reason(record));
    } else if (record.kind == TraceKind::kDrop) {
      append(R"(,"args":{{{}}})", drop_reason(record).substr(1));
    }
    append("}}");
  }

  static std::string drop_reason(const Record& record) {
    if (record.kind != TraceKind::kDrop || record.detail >= kDropReasonNames.size()) return {};
    return fmt::format(R"(,"reason":"{}")", kDropReasonNames[record.detail]);
  }
  /// Another number for each frame of each feed, for five days of its line of time.
  static std::uint64_t flow_of(std::size_t process, std::int64_t frame) {
    constexpr int kFrameBits = 39;
    return (std::uint64_t{process} << kFrameBits) |
           (static_cast<std::uint64_t>(frame) & ((std::uint64_t{1} << kFrameBits) - 1));
  }
  /// With three decimals, so that nothing is lost.
  static std::string microseconds(std::chrono::nanoseconds time) {
    return fmt::format("{}.{:03}", time.count() / 1000, time.count() % 1000);
  }

  const std::vector<TraceTrackName> tracks_;
  const Clock::time_point begin_;
  const std::function<void(std::string_view)>& sink_;
  std::vector<std::string> processes_;
  std::vector<Place> places_;  // by track
  std::vector<Mark> marks_;
  fmt::memory_buffer text_;
  bool has_events_ = false;
};

}  // namespace

void write_trace(const FlightRecorder& recorder, const TraceSelection& selection,
                 const std::function<void(std::string_view)>& sink) {
  const Clock::time_point now = Clock::now();
  const auto wall = std::chrono::system_clock::now();
  const Clock::time_point wanted = now - selection.time;
  const Clock::time_point begin = std::max(wanted, recorder.oldest().value_or(now));
  using std::chrono::duration_cast;
  using std::chrono::system_clock;
  const auto wall_begin = wall - duration_cast<system_clock::duration>(now - begin);
  TraceWriter writer(selection, recorder.tracks(), begin, wall_begin, sink);
  const VersionInfo version = version_info();
  writer.append(
      R"({{"displayTimeUnit":"ms","otherData":{{"framelane":{},"from":"{}","to":"{}"}},"traceEvents":[)",
      json_text(version.version), utc_time(wall_begin), utc_time(wall));
  writer.append("\n");
  writer.write_names();
  writer.write_marks();
  recorder.visit(begin, [&](const Record& record) { writer.write(record); });
  writer.append("\n]}}\n");
  writer.flush();
}

}  // namespace framelane
