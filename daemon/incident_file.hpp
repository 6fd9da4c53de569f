#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/incidents.hpp"
#include "pipeline/base/detached_read.hpp"

namespace framelane {

/// Where incidents are kept: incidents.jsonl in the first folder of $STATE_DIRECTORY (systemd's
/// StateDirectory=), or else in `recorder_directory`. Empty: nowhere.
std::string incident_path(const std::string& recorder_directory);

/// Keeps incidents over restarts of the process, in a file with a line of JSON for each change. The
/// file has twice as many lines as incidents are kept, at most. It is read and written on threads
/// of their own, as it may be on a file server that does not answer. What cannot be read or written
/// costs a warning, and nothing else. One thread.
class IncidentFile {
 public:
  using Clock = std::chrono::steady_clock;
  /// A file that cannot be read in this time is left alone.
  static constexpr std::chrono::seconds kPatience{2};
  /// So often what changes only in its counts is written, and the file's time shows that framelane
  /// was still running.
  static constexpr std::chrono::minutes kEvery{1};
  static constexpr std::size_t kMostLines = 2 * Incidents::kKept;

  /// What an earlier process left.
  struct Earlier {
    /// When it ran for the last time; nothing if there was none.
    std::optional<std::chrono::system_clock::time_point> seen{};
    bool was_stopped = false;  ///< false: it was killed, or the machine failed
  };

  /// Nothing is kept if `path` is empty. `incidents` outlives this.
  IncidentFile(std::string path, Incidents& incidents,
               std::chrono::milliseconds patience = kPatience);

  /// Adds the incidents of the file to the others, of which there are none yet. Those that an
  /// earlier process left open end when that was last seen. Blocks for `patience` at most.
  Earlier load(std::chrono::system_clock::time_point now);
  /// Begins to write what has changed, if it is time. To be called often.
  void save(Clock::time_point now);
  /// Writes what is left, and waits for that, `time` at most. The process may end then.
  void finish(std::chrono::milliseconds time);

 private:
  struct Contents {
    std::vector<Incident> incidents;  ///< by id
    std::size_t damaged = 0;          ///< lines
    std::optional<std::chrono::system_clock::time_point> written{};
    std::string failure{};  ///< why it cannot be read; empty if it can
  };

  static Contents read(const std::string& path);
  void end_open(std::vector<Incident>& incidents, Earlier& earlier,
                std::chrono::system_clock::time_point now) const;
  void begin(Clock::time_point now);
  void take_result(std::chrono::milliseconds time);
  void warn_once(const std::string& why);

  const std::string path_;
  Incidents& incidents_;
  const std::chrono::milliseconds patience_;
  DetachedRead<Contents> reading_;
  DetachedRead<std::string> writing_;  // why it failed; empty if it did not
  bool works_ = false;
  bool rewrites_ = true;  // all of the file, next time
  bool warned_ = false;   // that it cannot be written
  std::size_t lines_ = 0;
  std::size_t writing_lines_ = 0;
  std::uint64_t written_ = 0;  // see Incidents::changed_since
  std::uint64_t writing_to_ = 0;
  Clock::time_point last_{};
};

}  // namespace framelane
