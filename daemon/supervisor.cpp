#include "daemon/supervisor.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "pipeline/base/backoff.hpp"
#include "pipeline/base/log.hpp"

namespace framelane {
namespace {

using Clock = std::chrono::steady_clock;

/// How often the loop turns when nothing happens.
constexpr std::chrono::milliseconds kTurn{250};
/// Threads that are stuck in a call (reading from a server that hangs, say) keep what they have,
/// and the next run would get stuck like the last: so many of a feed's runs may be, and no more.
constexpr int kMaxAbandonedRuns = 3;
/// A failed feed is started again after one second, then more and more rarely.
constexpr BackoffOptions kRestart{std::chrono::seconds(1), std::chrono::seconds(60)};

std::shared_ptr<FeedStats> make_stats(const FeedOptions& options) {
  std::vector<FeedStats::EncodeSpec> encodes;
  for (const EncodeOptions& encode : options.encodes) {
    encodes.push_back({encode.name, encode.copy_video});
  }
  std::vector<std::string> outputs;
  for (const OutputOptions& output : options.outputs) outputs.push_back(output.name);
  const bool converts = std::ranges::any_of(
      options.encodes, [](const EncodeOptions& encode) { return !encode.copy_video; });
  return std::make_shared<FeedStats>(options.name, encodes, outputs, converts ? options.lanes : 0);
}

/// What stops have cost a feed so far: frames, and packets of each output.
struct StopLoss {
  explicit StopLoss(const FeedStats& stats) {
    for (const EncodeCounts& encode : stats.ledger().encodes) {
      frames += encode.dropped[index_of(DropReason::kStop)];
    }
    for (const OutputStats& output : stats.outputs()) {
      packets.push_back(output.packets_dropped[index_of(PacketDrop::kStop)]);
    }
  }

  std::uint64_t frames = 0;
  std::vector<std::uint64_t> packets;
};

std::string counted(std::uint64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

}  // namespace

class Supervisor::Impl {
 public:
  Impl(std::vector<FeedOptions> feeds, std::shared_ptr<Device> device, Options options)
      : device_(std::move(device)), options_(options) {
    for (FeedOptions& feed : feeds) {
      feed.once = options_.once;
      entries_.emplace_back(std::make_shared<const FeedOptions>(std::move(feed)));
    }
  }

  ~Impl() {
    request_stop();
    if (thread_.joinable()) thread_.join();
  }

  void start() {
    beat();
    thread_ = std::thread([this] { run(); });
  }

  void request_stop() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
  }

  bool wait_done(std::chrono::milliseconds timeout) {
    std::unique_lock lock(mutex_);
    return done_changed_.wait_for(lock, timeout, [this] { return done_; });
  }

  bool all_succeeded() const {
    return std::ranges::none_of(entries_, [](const Entry& entry) { return entry.failed.load(); });
  }

  bool ready() const {
    const std::lock_guard lock(mutex_);
    return ready_ && !stop_;
  }

  Clock::duration heartbeat_age() const {
    return Clock::now() - Clock::time_point(Clock::duration(heartbeat_.load()));
  }

  std::vector<FeedView> feeds() const {
    std::vector<FeedView> views;
    for (const Entry& entry : entries_) views.push_back({entry.options, entry.stats});
    return views;
  }

  std::vector<std::shared_ptr<const Device>> devices() const {
    if (auto fallback = device_->fallback()) return {device_, std::move(fallback)};
    return {device_};
  }

  bool restart(std::string_view name) {
    const auto entry = std::ranges::find_if(
        entries_, [name](const Entry& candidate) { return candidate.options->name == name; });
    if (entry == entries_.end()) return false;
    {
      const std::lock_guard lock(mutex_);
      entry->restart = true;
      woken_ = true;
    }
    changed_.notify_all();
    return true;
  }

 private:
  struct Entry {
    explicit Entry(std::shared_ptr<const FeedOptions> feed_options)
        : options(std::move(feed_options)),
          stats(make_stats(*options)),
          lost_before(*stats),
          backoff(kRestart) {}

    const std::shared_ptr<const FeedOptions> options;
    const std::shared_ptr<FeedStats> stats;
    std::atomic<bool> failed{false};
    bool restart = false;  // asked for; guarded by mutex_

    // Of the supervisor's thread.
    StopLoss lost_before;  // what the runs before this one had lost
    Backoff backoff;
    std::unique_ptr<Feed> feed;
    bool started_before = false;
    std::optional<Clock::time_point> start_at;
    bool held = false;                             // it may not start: see kMaxAbandonedRuns
    std::optional<Clock::time_point> drain_until;  // being restarted
    bool cut_short = false;                        // its drain took too long
  };

  void run() {
    for (Entry& entry : entries_) {
      start_feed(entry);
      beat();
    }
    {
      const std::lock_guard lock(mutex_);
      ready_ = true;
    }
    while (!turn()) {
      beat();
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, kTurn, [this] { return stop_ || woken_; });
      woken_ = false;
      if (stop_) break;
    }
    stop_feeds();
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    done_changed_.notify_all();
    // The admin listener still answers for a moment; its probe of this loop shall not fail then.
    beat();
  }

  void beat() { heartbeat_ = Clock::now().time_since_epoch().count(); }

  void start_feed(Entry& entry) {
    FeedOptions options = *entry.options;
    options.recover = !std::exchange(entry.started_before, true);
    entry.start_at.reset();
    entry.failed = false;
    entry.lost_before = StopLoss(*entry.stats);
    try {
      entry.feed = Feed::start(std::move(options), entry.stats, device_, [this] {
        {
          const std::lock_guard lock(mutex_);
          woken_ = true;
        }
        changed_.notify_all();
      });
    } catch (const FeedError& error) {
      failed(entry, error.code(), error.what());
    } catch (const std::exception& error) {
      failed(entry, FeedFault::kInternal, error.what());
    }
  }

  /// Looks after every feed once; true when there is nothing left to look after.
  bool turn() {
    bool busy = false;
    const auto now = Clock::now();
    for (Entry& entry : entries_) {
      if (take_restart(entry) && !entry.drain_until) {  // else it is being restarted already
        log::info("feed {}: restarting on request", entry.options->name);
        if (entry.feed != nullptr) {
          entry.feed->drain();
          entry.drain_until = now + kDrainTime;
        } else {
          entry.start_at = now;
        }
      }
      if (entry.feed != nullptr) {
        if (entry.drain_until && now >= *entry.drain_until) {
          cut_short(entry);
        }
        if (const std::optional<Feed::Outcome> outcome = entry.feed->outcome()) {
          entry.feed.reset();
          ended(entry, *outcome);
        } else if (entry.stats->status().state == FeedState::kRunning) {
          entry.backoff.succeeded(now);
        }
      }
      if (entry.start_at && now >= *entry.start_at && may_start(entry)) start_feed(entry);
      busy = busy || entry.feed != nullptr || entry.start_at.has_value();
    }
    return !busy && options_.once;
  }

  /// False, said once, as long as too many of the feed's runs are stuck.
  bool may_start(Entry& entry) {
    const bool held = entry.stats->abandoned_runs >= kMaxAbandonedRuns;
    if (held && !entry.held) {
      const std::string reason = fmt::format(
          "{} of its runs are stuck in calls that do not end; it goes on when one of "
          "them does, or when framelane is started again ({})",
          kMaxAbandonedRuns, entry.stats->status().reason);
      entry.stats->set_state(FeedState::kBackoff, reason);
      log::error("feed {}: {}", entry.options->name, reason);
    }
    entry.held = held;
    return !held;
  }

  bool take_restart(Entry& entry) {
    const std::lock_guard lock(mutex_);
    return std::exchange(entry.restart, false);
  }

  void ended(Entry& entry, const Feed::Outcome& outcome) {
    const bool restarting = std::exchange(entry.drain_until, std::nullopt).has_value();
    if (std::exchange(entry.cut_short, false)) warn_of_loss(entry);
    if (restarting && !stopping_) {
      if (outcome.kind == Feed::Outcome::Kind::kFailed) {
        log::error("feed {}: {}", entry.options->name, outcome.reason);
      }
      entry.start_at = Clock::now();
    } else if (outcome.kind == Feed::Outcome::Kind::kFailed) {
      failed(entry, outcome.fault, outcome.reason);
    } else {
      entry.stats->set_state(FeedState::kEnded, "");
      log::info("feed {}: ended", entry.options->name);
    }
  }

  static void cut_short(Entry& entry) {
    entry.cut_short = true;
    entry.feed->cancel(DropReason::kStop);
  }

  /// Nobody may scrape the counters any more when a stop has moved them.
  static void warn_of_loss(const Entry& entry) {
    const StopLoss lost(*entry.stats);
    const std::uint64_t frames = lost.frames - entry.lost_before.frames;
    std::uint64_t packets = 0;
    std::string outputs;
    for (std::size_t i = 0; i < lost.packets.size(); ++i) {
      const std::uint64_t of_output = lost.packets[i] - entry.lost_before.packets[i];
      if (of_output == 0) continue;
      packets += of_output;
      outputs += (outputs.empty() ? "output " : ", ") + entry.options->outputs[i].name;
    }
    if (frames == 0 && packets == 0) return;
    log::warn("feed {}: stopped with {} and {} not delivered; {:.1f} s were not enough for {}",
              entry.options->name, counted(frames, "frame"), counted(packets, "packet"),
              std::chrono::duration<double>(kDrainTime).count(),
              outputs.empty() ? "the encoder: a faster preset helps"
                              : outputs + ": see whether a peer or disk is slow");
  }

  void failed(Entry& entry, FeedFault fault, const std::string& reason) {
    const bool final = stopping_ || options_.once || index_of(fault) >= kFeedFaultNames.size();
    if (final) {
      entry.failed = true;
      entry.stats->set_state(FeedState::kFailed, reason);
      log::error("feed {}: failed: {}", entry.options->name, reason);
      return;
    }
    const auto wait = entry.backoff.next();
    entry.stats->count_restart(fault);
    entry.stats->set_state(FeedState::kBackoff, reason);
    entry.start_at = Clock::now() + wait;
    log::error("feed {}: {}; restarting it in {:.1f} s", entry.options->name, reason,
               std::chrono::duration<double>(wait).count());
  }

  /// Drains all at once, cancels what is not done in time, and lets go.
  void stop_feeds() {
    stopping_ = true;
    for (Entry& entry : entries_) {
      if (entry.feed != nullptr) entry.feed->drain();
    }
    const auto deadline = Clock::now() + kDrainTime;
    for (Entry& entry : entries_) {
      while (entry.feed != nullptr && Clock::now() < deadline &&
             !entry.feed->join_until(std::min(deadline, Clock::now() + kTurn))) {
        beat();
      }
    }
    for (Entry& entry : entries_) {
      if (entry.feed != nullptr && !entry.feed->outcome()) cut_short(entry);
    }
    for (Entry& entry : entries_) {
      if (entry.feed == nullptr) continue;
      beat();
      // A cancelled feed always has an outcome once its time is up, and the time of all runs at
      // once.
      std::optional<Feed::Outcome> outcome;
      while (!(outcome = entry.feed->outcome())) entry.feed->join_until(Clock::now() + kTurn);
      entry.feed.reset();
      ended(entry, *outcome);
    }
  }

  const std::shared_ptr<Device> device_;
  const Options options_;
  std::deque<Entry> entries_;  // fixed once constructed

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable done_changed_;
  bool stop_ = false;
  bool woken_ = false;
  bool ready_ = false;
  bool done_ = false;
  bool stopping_ = false;  // of the supervisor's thread
  std::atomic<Clock::rep> heartbeat_{0};
  std::thread thread_;
};

Supervisor::Supervisor(std::vector<FeedOptions> feeds, std::shared_ptr<Device> device,
                       Options options)
    : impl_(std::make_unique<Impl>(std::move(feeds), std::move(device), options)) {}
Supervisor::~Supervisor() = default;

void Supervisor::start() { impl_->start(); }
void Supervisor::request_stop() { impl_->request_stop(); }
bool Supervisor::wait_done(std::chrono::milliseconds timeout) { return impl_->wait_done(timeout); }
bool Supervisor::all_succeeded() const { return impl_->all_succeeded(); }
bool Supervisor::ready() const { return impl_->ready(); }
std::chrono::steady_clock::duration Supervisor::heartbeat_age() const {
  return impl_->heartbeat_age();
}
std::vector<FeedView> Supervisor::feeds() const { return impl_->feeds(); }
std::vector<std::shared_ptr<const Device>> Supervisor::devices() const { return impl_->devices(); }
bool Supervisor::restart(std::string_view feed) { return impl_->restart(feed); }

}  // namespace framelane
