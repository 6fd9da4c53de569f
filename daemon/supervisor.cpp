#include "daemon/supervisor.hpp"

#include <malloc.h>

#include <algorithm>
#include <utility>

namespace framelane {
namespace {

/// How often the loop turns when nothing happens.
constexpr std::chrono::milliseconds kTurn{250};

}  // namespace

Supervisor::Supervisor(std::vector<FeedOptions> feeds, std::shared_ptr<DeviceSet> devices,
                       Options options)
    : devices_(std::move(devices)), options_(std::move(options)) {
  for (FeedOptions& feed : feeds) {
    feed.once = options_.once;
    feeds_.emplace_back(
        std::move(feed), devices_, options_.now, [this] { wake(); }, FeedDeadlines{},
        options_.reread, retention_);
  }
}

Supervisor::~Supervisor() {
  request_stop();
  if (thread_.joinable()) thread_.join();
}

void Supervisor::start() {
  beat();
  thread_ = std::thread([this] { run(); });
}

void Supervisor::request_stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
}

bool Supervisor::wait_done(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  return done_changed_.wait_for(lock, timeout, [this] { return done_; });
}

bool Supervisor::all_succeeded() const {
  return std::ranges::none_of(feeds_, &SupervisedFeed::has_failed);
}

bool Supervisor::ready() const {
  const std::lock_guard lock(mutex_);
  return ready_ && !stop_;
}

Supervisor::Clock::duration Supervisor::heartbeat_age() const {
  return options_.now() - Clock::time_point(Clock::duration(heartbeat_.load()));
}

std::vector<FeedView> Supervisor::feeds() const {
  std::vector<FeedView> views;
  for (const SupervisedFeed& feed : feeds_) views.push_back(feed.view());
  return views;
}

bool Supervisor::restart(std::string_view name) {
  const auto feed = std::ranges::find_if(feeds_, [name](const SupervisedFeed& candidate) {
    return candidate.view().options->name == name;
  });
  if (feed == feeds_.end()) return false;
  feed->request_restart();
  wake();
  return true;
}

void Supervisor::run() {
  trim_due_ = options_.now() + kTrimEvery;
  for (SupervisedFeed& feed : feeds_) {
    if (stopping()) break;
    feed.start();
    beat();
  }
  {
    const std::lock_guard lock(mutex_);
    ready_ = true;
  }
  while (!stopping() && !turn()) {
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
  // The admin listener still answers for a moment; its probe of this loop must not fail then.
  beat();
}

/// Looks after every feed once; true if there is nothing left to look after.
bool Supervisor::turn() {
  bool busy = false;
  for (SupervisedFeed& feed : feeds_) {
    busy = feed.turn() || busy;
    beat();
  }
  retention_->watch();
  trim_heap();
  return !busy && options_.once;
}

/// Connections and encoders that come and go leave holes in the heaps of many threads, which the C
/// library gives back to the system only when it is told to.
void Supervisor::trim_heap() {
#ifdef __GLIBC__
  if (options_.now() < trim_due_) return;
  ::malloc_trim(0);
  trim_due_ = options_.now() + kTrimEvery;
#endif
}

/// Drains all feeds at once, cancels what is not done in time, and lets go.
void Supervisor::stop_feeds() {
  for (SupervisedFeed& feed : feeds_) feed.drain();
  const auto deadline = options_.now() + SupervisedFeed::kDrainTime;
  for (SupervisedFeed& feed : feeds_) {
    for (auto now = options_.now(); now < deadline; now = options_.now()) {
      if (feed.wait_for(std::min<Clock::duration>(kTurn, deadline - now))) break;
      beat();
    }
  }
  for (SupervisedFeed& feed : feeds_) feed.cancel();
  for (SupervisedFeed& feed : feeds_) {
    beat();
    feed.finish();
  }
  retention_->stop();  // it has heard of the last files by now
}

bool Supervisor::stopping() const {
  const std::lock_guard lock(mutex_);
  return stop_;
}

void Supervisor::beat() { heartbeat_ = options_.now().time_since_epoch().count(); }

void Supervisor::wake() {
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
  }
  changed_.notify_all();
}

}  // namespace framelane
