#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/incidents.hpp"
#include "pipeline/measure/feed_stats.hpp"

namespace framelane {

/// One time on two clocks: how long something lasts is measured on the one that is never set.
struct Moment {
  std::chrono::steady_clock::time_point steady;
  std::chrono::system_clock::time_point wall;
};

/// Makes incidents of the faults of one source, encode or output: one incident from when it last
/// worked until it works again, however often it is tried in between. That of an output which is
/// lost stays open until it has worked for kSettled: a peer that takes nothing can be connected to
/// all the same. One thread.
class OutageWatch {
 public:
  /// What fails again so soon, for the same cause, has not really worked in between: its incident
  /// goes on.
  static constexpr std::chrono::minutes kSettled{1};
  static constexpr std::size_t kMostCodes = 3;  ///< causes of one incident that are told

  struct State {
    FaultCount faults{};
    bool works = false;  ///< or has come to its end
    bool final = false;  ///< it has failed and is not tried again
    std::chrono::system_clock::time_point works_since{};
    bool records = false;  ///< what it does not deliver is missing in recordings
  };

  OutageWatch() = default;
  /// `subject`: what it is about.
  OutageWatch(Incidents& incidents, Incident subject)
      : incidents_(&incidents), subject_(std::move(subject)) {}

  void look(const State& state, Moment now);
  /// It is watched no more, and what lasts is over. `because` is added to the texts.
  void end(Moment now, std::string_view because);

 private:
  struct Outage {
    Incident incident{};
    std::vector<std::string> codes{};
    bool lasts = false;    ///< it does not work
    bool settles = false;  ///< it works, and the incident is over if it goes on to
    std::chrono::system_clock::time_point end{};  ///< since it works
    bool records = false;
    std::chrono::milliseconds before{0};  ///< it was first looked at so long after it began
    std::chrono::steady_clock::time_point seen{};
    std::chrono::steady_clock::time_point over{};
  };

  void note(const State& state, std::uint64_t faults, Moment now);
  void begin(Outage& outage, const State& state, Moment now) const;
  /// It works again.
  void recover(Outage& outage, std::chrono::system_clock::time_point since, Moment now,
               std::string_view because = {});
  void close(Outage& outage, std::string_view because = {}) const;

  Incidents* incidents_ = nullptr;
  Incident subject_;
  std::uint64_t seen_ = 0;                    // faults
  std::map<IncidentKind, Outage> outages_{};  // the last of each kind
};

}  // namespace framelane
