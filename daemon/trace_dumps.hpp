#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/incidents.hpp"
#include "daemon/supervisor.hpp"
#include "pipeline/base/detached_read.hpp"

namespace framelane {

/// Why a trace is written without being asked for by a client. kDrops: a feed has lost kBurst
/// frames within kBurstTime. kSignal: SIGUSR1.
enum class TraceCause { kDrops, kFeedFailed, kDeviceLost, kSignal };
inline constexpr std::array<std::string_view, 4> kTraceCauseNames{"drops", "feed_failed",
                                                                  "device_lost", "signal"};
using TraceCounts = std::array<std::atomic<std::uint64_t>, kTraceCauseNames.size()>;

/// Writes traces of what led to a fault to a folder, as framelane-trace-TIME-CAUSE.json.gz. Old
/// ones are deleted. Main thread; writing is on a thread of its own, as the folder may be on a file
/// server that does not answer.
class TraceDumps {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::uint64_t kBurst = 10;  ///< frames
  static constexpr std::chrono::seconds kBurstTime{10};
  /// A trace ends so long after its cause, so that it shows what came of it.
  static constexpr std::chrono::seconds kAftermath{2};
  static constexpr std::chrono::seconds kLength{30};
  /// Between two traces, unless a signal asks for them.
  static constexpr std::chrono::minutes kPause{5};
  static constexpr std::size_t kKept = 24;  ///< files

  /// Writes nothing if `directory` is empty, or if the supervisor has no recorder. The others
  /// outlive this.
  TraceDumps(std::string directory, const Supervisor& supervisor, const Incidents& incidents);

  /// Looks for a cause, and has a trace written if one is due. To be called several times a second.
  void look(Clock::time_point now);
  /// One is wanted because of a signal.
  void ask(Clock::time_point now);
  /// The process ends: a trace that is being written has kLastWrite to be completed; its thread is
  /// abandoned then.
  void finish();
  static constexpr std::chrono::milliseconds kLastWrite{300};
  /// How many have been written for each cause. Any thread.
  const TraceCounts& written() const { return written_; }

 private:
  struct FeedLosses {
    Clock::time_point since{};
    std::uint64_t lost = 0;      // at that time
    std::uint64_t failures = 0;  // restarts, and the end of a feed that has failed
  };

  bool works() const { return !directory_.empty() && supervisor_.recorder() != nullptr; }
  std::optional<TraceCause> find_cause(Clock::time_point now);
  void want(TraceCause cause, Clock::time_point now);
  void begin_to_write();
  void finish_writing();

  const std::string directory_;
  const Supervisor& supervisor_;
  const Incidents& incidents_;
  std::map<std::string, FeedLosses> feeds_;
  std::size_t devices_lost_ = 0;
  std::optional<TraceCause> wanted_;
  Clock::time_point due_{};
  std::optional<Clock::time_point> last_;  // when the last one was wanted
  TraceCause writing_cause_ = TraceCause::kSignal;
  DetachedRead<std::string> writing_;  // why it failed; empty if it did not
  TraceCounts written_{};
};

}  // namespace framelane
