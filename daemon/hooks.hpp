#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "config/process_config.hpp"
#include "daemon/hook.hpp"
#include "daemon/incidents.hpp"
#include "pipeline/measure/completed_file.hpp"

namespace framelane {

/// Tells the hooks of the configuration what happens. Any thread. Telling does not block.
class Hooks {
 public:
  using Clock = Hook::Clock;
  /// What waits when the feeds have ended has so long to be delivered,
  static constexpr std::chrono::milliseconds kLast{3000};
  /// but the process is to end this long after a stop was asked for,
  static constexpr std::chrono::milliseconds kAfterStop{9000};
  /// and there is so much time in any case.
  static constexpr std::chrono::milliseconds kLeast{300};

  explicit Hooks(const std::vector<HookConfig>& hooks) { replace(hooks); }

  /// From now on there are these hooks. One that keeps its name keeps what waits for it, and its
  /// counts. One that is gone drops what waits, and its thread ends: whoever lets go of it last,
  /// which may be a thread that tells it something, waits for the request that is under way to be
  /// broken off.
  void replace(const std::vector<HookConfig>& hooks);

  void file_completed(const CompletedFile& file);
  /// These incidents have changed. What is told is that one begins or ends. One thread.
  void incidents_changed(const std::vector<Incident>& changed);

  /// By the hooks' names.
  std::vector<std::pair<std::string, HookCounts>> counts() const;

  /// A stop has been asked for.
  void begin_stop(Clock::time_point now);
  /// The feeds have ended, and nothing more is told.
  void finish(Clock::time_point now);
  /// Waits until everything is delivered, or the time is over.
  void wait_finished();

 private:
  using List = std::vector<std::shared_ptr<Hook>>;
  List present() const;
  /// Those that are told of such events.
  List takers(bool HookConfig::*wants) const;

  std::set<std::uint64_t> open_;  // incidents whose begin was told, and whose end was not
  std::uint64_t newest_ = 0;      // incident that was told
  mutable std::mutex mutex_;      // guards what follows
  List hooks_;
  std::optional<Clock::time_point> stop_by_;
};

}  // namespace framelane
