#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "daemon/incidents.hpp"
#include "daemon/outage_watch.hpp"

namespace framelane {

/// Makes incidents of what is counted, such as lost frames: one from the first to the last of
/// many that come close together. One thread.
class BurstWatch {
 public:
  /// It is over when so long nothing more has come.
  static constexpr std::chrono::seconds kCalm{30};
  /// A single loss is no incident: so many have to come within this time.
  static constexpr std::chrono::seconds kBurstTime{10};
  /// The counts of an incident that lasts are at most so old.
  static constexpr std::chrono::seconds kTold{5};

  /// What has come since the last look.
  struct Counts {
    std::map<std::string, std::uint64_t> by_reason{};
    std::set<std::string> encodes{};  ///< that it concerns

    std::uint64_t sum() const;
    void add(const Counts& more);
  };

  BurstWatch() = default;
  /// `subject`: what it is about, with kind and severity, and with the code if there is one cause;
  /// else the code is the most frequent reason. `least`: an incident begins with so many.
  BurstWatch(Incidents& incidents, Incident subject, std::uint64_t least)
      : incidents_(&incidents), subject_(std::move(subject)), least_(least) {}

  void look(const Counts& more, Moment now);
  /// True if what is lost now belongs to what was lost before.
  bool under_way(Moment now) const;
  /// It is watched no more, and what lasts is over.
  void end();

 private:
  bool lasts() const { return incident_.id != 0; }
  void tell(Moment now);

  Incidents* incidents_ = nullptr;
  Incident subject_;
  std::uint64_t least_ = 1;
  Counts counts_{};
  Moment first_{};
  Moment last_{};
  std::chrono::steady_clock::time_point told_{};
  Incident incident_{};  // id 0: none lasts
};

}  // namespace framelane
