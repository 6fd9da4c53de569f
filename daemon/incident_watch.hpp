#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "daemon/config_reload.hpp"
#include "daemon/feed_incidents.hpp"
#include "daemon/feed_view.hpp"
#include "daemon/incident_file.hpp"
#include "daemon/incidents.hpp"

namespace framelane {

class Supervisor;

/// Where incidents are found.
struct Observation {
  std::vector<FeedView> feeds;
  std::vector<std::string> lost_devices;
  std::uint64_t stuck_threads = 0;
};

/// Finds incidents in what the feeds count and show. It looks, instead of being told, so that
/// nothing of this is on a frame's way. Main thread.
class IncidentWatch {
 public:
  static constexpr std::chrono::milliseconds kEvery{200};

  explicit IncidentWatch(Incidents& incidents) : incidents_(incidents) {}

  /// framelane begins to run; `earlier` did before.
  void begin(const IncidentFile::Earlier& earlier, std::size_t feeds, Moment now);
  /// Looks if it is time. To be called often.
  void look(const Supervisor& supervisor, Moment now);
  void look(const Observation& seen, Moment now);
  /// framelane ends, and with it all that lasts. `gave_up`: because threads are stuck.
  void end(bool gave_up, Moment now);

 private:
  void look_at_feeds(const std::vector<FeedView>& feeds, Moment now);
  void look_at_devices(const std::vector<std::string>& lost, Moment now);
  void look_at_threads(std::uint64_t stuck, Moment now);

  Incidents& incidents_;
  std::chrono::steady_clock::time_point next_{};
  std::map<std::string, FeedIncidents> feeds_;
  std::map<std::string, Incident> lost_;  // by device
  std::optional<Incident> stuck_;
  std::uint64_t stuck_threads_ = 0;
};

/// What has come of a reload is an incident. Any thread.
void note_reload(Incidents& incidents, const ConfigReload::Outcome& outcome);

}  // namespace framelane
