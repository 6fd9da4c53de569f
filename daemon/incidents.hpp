#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace framelane {

/// What an incident is about. The names are part of the public contract, as labels.hpp's are.
enum class IncidentKind {
  kStarted,
  kStopped,
  kReload,
  kReloadRefused,
  kSourceLost,     ///< no data comes, for one of the causes of IoFault
  kFeedFailed,     ///< for one of the causes of FeedFault
  kEncodeDown,     ///< no encoder can be opened
  kOutputLost,     ///< nothing can be written
  kFramesDropped,  ///< or an output's packets
  kFormatChanged,
  kClockJumped,  ///< of the source
  kDeviceLost,
  kThreadStuck,
  kDiskFull,
};
inline constexpr std::array<std::string_view, 14> kIncidentKindNames{
    "started",      "stopped",     "reload",       "reload_refused", "source_lost",
    "feed_failed",  "encode_down", "output_lost",  "frames_dropped", "format_changed",
    "clock_jumped", "device_lost", "thread_stuck", "disk_full"};

enum class Severity { kInfo, kWarning, kError };
inline constexpr std::array<std::string_view, 3> kSeverityNames{"info", "warning", "error"};

/// Something that happened, once for each cause: what fails again when it is tried again is still
/// the same incident. Texts that say nothing are empty.
struct Incident {
  std::uint64_t id = 0;  ///< from 1 on, in the order in which they became known
  IncidentKind kind = IncidentKind::kStarted;
  Severity severity = Severity::kInfo;
  std::string feed{};
  std::string encode{};
  std::string output{};
  std::string device{};
  std::string code{};    ///< of the cause, a name of labels.hpp
  std::string reason{};  ///< the cause in words
  std::string text{};    ///< what happened, in a few words: "no data for 4 min 12 s (timeout)"
  std::chrono::system_clock::time_point begin{};
  std::optional<std::chrono::system_clock::time_point> end{};  ///< nothing while it lasts
  /// How long it has lasted so far; what worked for a short while is left out.
  std::chrono::milliseconds lasted{0};
  std::uint64_t retries = 0;
  std::optional<std::chrono::milliseconds> gap{};  ///< in the recordings that it concerns
};

/// "4 min 12 s", "2.5 s", "3 d 4 h".
std::string duration_text(std::chrono::milliseconds time);

/// The last kKept incidents. Any thread; nothing blocks.
class Incidents {
 public:
  static constexpr std::size_t kKept = 1000;
  static constexpr std::size_t kMostText = 1000;  ///< bytes of each text; the rest is left out

  /// Gives the incident an id, and returns that. Its texts are redacted, and characters that would
  /// control a terminal are escaped. If there are too many, the oldest that is over goes, or, if
  /// all of them last, the oldest.
  std::uint64_t add(Incident incident);
  /// Adds an incident whose id is 0, and sets its id. Else replaces the one that has this id, if it
  /// is still there.
  void put(Incident& incident);
  /// Nothing if there is none any more.
  std::optional<Incident> find(std::uint64_t id) const;
  /// Those of an earlier process, by their ids, before any is added.
  void restore(const std::vector<Incident>& incidents);

  /// Those that last or have ended at `since` or later, the oldest first.
  std::vector<Incident> since(std::chrono::system_clock::time_point since) const;
  /// Those that are new or have changed since the call that gave `change` this value (0: all), in
  /// the order in which they changed last. `change` becomes what the next call needs.
  std::vector<Incident> changed_since(std::uint64_t& change) const;
  /// Rises when one is new, begins again or ends, but not when only its counts change: a value that
  /// `change` above may have.
  std::uint64_t last_turn() const;

 private:
  struct Entry {
    Incident incident;
    std::uint64_t changed = 0;
  };

  void make_room();  // requires mutex_

  mutable std::mutex mutex_;                // guards what follows
  std::map<std::uint64_t, Entry> entries_;  // by id
  std::uint64_t last_id_ = 0;
  std::uint64_t change_ = 0;
  std::uint64_t turn_ = 0;
};

}  // namespace framelane
