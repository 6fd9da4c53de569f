#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "config/problem.hpp"
#include "config/process_config.hpp"
#include "config/yaml_tree.hpp"
#include "daemon/admin_access.hpp"
#include "daemon/hooks.hpp"
#include "daemon/supervisor.hpp"
#include "pipeline/base/detached_read.hpp"

namespace framelane {

/// Reads the secrets of a feed of this configuration again; empty if it names no ${file:…}.
RereadOptions reread_secrets(const Config& config);

/// The configuration that is in force, and how another one comes into force while the program runs.
///
/// The new file is read and checked whole first. If anything is wrong with it, nothing changes.
/// Any thread.
class ConfigReload {
 public:
  /// Files that cannot be read in this time (a file server is silent, say) are given up.
  static constexpr std::chrono::seconds kPatience{5};
  /// So many reads may be stuck; until then another one begins beside them, since the file may have
  /// been mended.
  static constexpr std::size_t kMostStuck = 3;

  struct Outcome {
    enum class Kind {
      kDone,
      kRefused,   ///< the old configuration goes on
      kBusy,      ///< another reload is under way
      kStopping,  ///< framelane is being stopped
    } kind = Kind::kDone;
    FeedChanges changes;                    ///< kDone
    std::vector<std::string> next_start{};  ///< kDone: keys that take effect at the next start
    std::vector<Problem> problems{};        ///< kRefused
  };
  struct Status {
    bool successful = true;  ///< the last attempt
    std::chrono::system_clock::time_point loaded;
  };

  /// `config` is what `file` contained; its feeds are those of the supervisor. The supervisor
  /// outlives this. `told`: is called with what has come of each reload that has ended. `hooks`:
  /// those that are in force; null: none.
  ConfigReload(
      std::string file, const Config& config, Supervisor& supervisor,
      std::chrono::milliseconds patience = kPatience,
      std::function<void(const Outcome&)> told = [](const Outcome&) {},
      std::shared_ptr<Hooks> hooks = nullptr);

  /// Blocks for `patience` at most, and until the supervisor has begun with it. Logs what comes of
  /// it, and tells systemd.
  Outcome run();
  Status status() const;
  /// Of the admin listener; a reload changes it, unless the listener itself would have to change.
  const std::shared_ptr<AdminAccess>& access() const { return access_; }
  const Hooks* hooks() const { return hooks_.get(); }  ///< null: none
  WatchdogConfig watchdog() const;                     ///< as it is in force
  /// The feed as it stands in the configuration in force (framelane::merged_feed); null if there is
  /// none of this name.
  Node merged_feed(const std::string& feed) const;

 private:
  LoadResult load_in_time();
  Outcome load_and_apply();
  std::vector<Problem> check_devices(const Config& config) const;
  std::vector<std::string> apply_to_process(const Config& config);
  void log_outcome(const Outcome& outcome) const;

  const std::string file_;
  Supervisor& supervisor_;
  const std::chrono::milliseconds patience_;
  const std::function<void(const Outcome&)> told_;
  const std::shared_ptr<Hooks> hooks_;
  std::mutex running_;  // held by the reload that is under way; guards what follows up to mutex_
  struct Reading {
    DetachedRead<LoadResult> read;
    std::chrono::steady_clock::time_point since;
  };
  std::array<Reading, kMostStuck> readings_;
  LogConfig log_;
  const std::shared_ptr<AdminAccess> access_;
  const std::string listen_;   // as at the start
  const DeviceChoice device_;  // likewise
  const RecorderConfig recorder_;
  mutable std::mutex mutex_;  // guards what follows
  WatchdogConfig watchdog_;
  std::shared_ptr<const Node> tree_;  // Config::tree; null if that was made without a file
  std::vector<std::string> files_;    // Config::files
  Status status_;
};

}  // namespace framelane
