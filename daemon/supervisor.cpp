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
  for (FeedOptions& feed : feeds) feeds_.push_back(make_feed(std::move(feed), options_.reread));
}

std::shared_ptr<SupervisedFeed> Supervisor::make_feed(FeedOptions options, RereadOptions reread) {
  options.once = options_.once;
  return std::make_shared<SupervisedFeed>(
      std::move(options), devices_, options_.now, [this] { wake(); }, FeedDeadlines{},
      std::move(reread), retention_, options_.recorder, options_.on_file);
}

Supervisor::Feeds Supervisor::present() const {
  const std::lock_guard lock(mutex_);
  return feeds_;
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
  reload_taken_.notify_all();
}

bool Supervisor::wait_done(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  return done_changed_.wait_for(lock, timeout, [this] { return done_; });
}

bool Supervisor::all_succeeded() const {
  return std::ranges::none_of(present(), &SupervisedFeed::has_failed);
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
  for (const auto& feed : present()) views.push_back(feed->view());
  return views;
}

bool Supervisor::restart(std::string_view name) {
  const Feeds feeds = present();
  const auto feed = std::ranges::find(feeds, name, &SupervisedFeed::name);
  if (feed == feeds.end()) return false;
  (*feed)->request_restart();
  wake();
  return true;
}

std::optional<FeedChanges> Supervisor::reload(std::vector<FeedOptions> feeds,
                                              RereadOptions reread) {
  Reload reload{std::move(feeds), std::move(reread), {}};
  std::unique_lock lock(mutex_);
  if (stop_ || done_) return std::nullopt;
  reload_ = &reload;
  changed_.notify_all();
  reload_taken_.wait(lock, [&] { return reload.changes || stop_ || done_; });
  reload_ = nullptr;
  return reload.changes;
}

void Supervisor::run() {
  trim_due_ = options_.now() + kTrimEvery;
  added_ = present();
  start_added();
  {
    const std::lock_guard lock(mutex_);
    ready_ = true;
  }
  while (!stopping() && !turn()) {
    beat();
    std::unique_lock lock(mutex_);
    changed_.wait_for(
        lock, kTurn, [this] { return stop_ || woken_ || (reload_ != nullptr && !reload_->taken); });
    woken_ = false;
    if (stop_) break;
  }
  stop_feeds();
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  done_changed_.notify_all();
  reload_taken_.notify_all();
  // The admin listener still answers for a moment; its probe of this loop must not fail then.
  beat();
}

void Supervisor::start_added() {
  for (const auto& feed : std::exchange(added_, {})) {
    if (stopping()) return;
    feed->start();
    beat();
  }
}

/// Begins with the reload that is asked for.
void Supervisor::take_reload() {
  std::vector<FeedOptions> wanted;
  RereadOptions reread;
  {
    const std::lock_guard lock(mutex_);
    if (reload_ == nullptr || reload_->taken) return;
    reload_->taken = true;
    wanted = std::move(reload_->feeds);
    reread = std::move(reload_->reread);
  }
  Feeds old = present();
  Feeds feeds;
  FeedChanges changes;
  for (FeedOptions& options : wanted) {
    const std::string name = options.name;
    const auto found = std::ranges::find(old, name, &SupervisedFeed::name);
    if (found != old.end()) {
      const bool changed = (*found)->reload(std::move(options), reread);
      (changed ? changes.changed : changes.unchanged).push_back(name);
      feeds.push_back(std::move(*found));
      old.erase(found);
    } else {
      feeds.push_back(make_feed(std::move(options), reread));
      added_.push_back(feeds.back());
      changes.added.push_back(name);
    }
  }
  for (std::shared_ptr<SupervisedFeed>& feed : old) {
    changes.removed.push_back(feed->name());
    feed->leave();
    std::erase(added_, feed);
    leaving_.push_back(std::move(feed));
  }
  {
    const std::lock_guard lock(mutex_);
    feeds_ = std::move(feeds);
    if (reload_ != nullptr) reload_->changes = std::move(changes);
  }
  reload_taken_.notify_all();
}

/// Looks after every feed once; true if there is nothing left to look after.
bool Supervisor::turn() {
  take_reload();
  bool busy = false;
  std::erase_if(leaving_, [&](const auto& feed) {
    const bool gone = !feed->turn();
    if (gone) devices_->forget(feed->name());
    beat();
    return gone;
  });
  if (leaving_.empty()) start_added();
  for (const auto& feed : present()) {
    if (std::ranges::find(added_, feed) != added_.end()) continue;
    busy = feed->turn() || busy;
    beat();
  }
  busy = busy || !leaving_.empty() || !added_.empty();
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
  Feeds feeds = present();
  feeds.insert(feeds.end(), leaving_.begin(), leaving_.end());
  for (const auto& feed : feeds) feed->drain();
  const auto deadline = options_.now() + SupervisedFeed::kDrainTime;
  for (const auto& feed : feeds) {
    for (auto now = options_.now(); now < deadline; now = options_.now()) {
      if (feed->wait_for(std::min<Clock::duration>(kTurn, deadline - now))) break;
      beat();
    }
  }
  for (const auto& feed : feeds) feed->cancel();
  for (const auto& feed : feeds) {
    beat();
    feed->finish();
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
