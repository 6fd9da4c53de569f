#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "daemon/incidents.hpp"
#include "daemon/outage_watch.hpp"

namespace framelane {

/// Makes incidents of changes of a source's format: one for all that come close together, since a
/// source whose format alternates has one fault. One thread.
class FormatWatch {
 public:
  /// A change that comes so soon after the last belongs to the same incident.
  static constexpr std::chrono::minutes kTogether{1};
  /// The counts of an incident are at most so old.
  static constexpr std::chrono::seconds kTold{5};

  /// `subject`: what it is about, with kind and severity.
  FormatWatch(Incidents& incidents, Incident subject)
      : incidents_(incidents), subject_(std::move(subject)) {}

  /// `format`: what the source sends; empty if it has sent nothing yet.
  void look(const std::string& format, Moment now);
  /// It is watched no more.
  void end();

 private:
  void tell(Moment now);

  Incidents& incidents_;
  const Incident subject_;
  std::string format_;
  std::string before_;  // the incident's first change
  Moment first_{};
  Moment last_{};  // change
  std::uint64_t changes_ = 0;
  std::uint64_t told_changes_ = 0;
  std::chrono::steady_clock::time_point told_{};
  std::uint64_t id_ = 0;  // of the incident; 0: there is none
};

}  // namespace framelane
