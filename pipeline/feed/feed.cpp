#include "pipeline/feed/feed.hpp"

#include <new>
#include <utility>

#include "pipeline/base/failure.hpp"
#include "pipeline/base/log.hpp"
#include "pipeline/feed/feed_run.hpp"

namespace framelane {

std::unique_ptr<Feed> Feed::start(FeedOptions options, std::shared_ptr<FeedStats> stats,
                                  std::shared_ptr<Device> device, std::function<void()> on_done,
                                  FeedDeadlines deadlines, std::shared_ptr<Retention> retention,
                                  std::shared_ptr<SnapshotTap> tap) {
  try {
    auto run = std::make_shared<FeedRun>(std::move(options), std::move(stats), std::move(device),
                                         std::move(on_done), deadlines, std::move(retention),
                                         std::move(tap));
    std::unique_ptr<Feed> feed(new Feed(run));
    run->start();  // if a thread fails to start, the feed's destructor ends the others
    return feed;
  } catch (const std::bad_alloc&) {
    throw FeedError(FeedFault::kMemory, shortage_text("its parts got no memory"));
  }
}

Feed::~Feed() {
  run_->cancel(DropReason::kStop);
  run_->join_cancelled();
  const int abandoned = run_->abandon();
  if (abandoned == 0) return;
  log::error("feed {}: {} of its threads did not end when asked to and {} abandoned", run_->name(),
             abandoned, abandoned == 1 ? "was" : "were");
}

bool Feed::change(std::shared_ptr<const FeedOptions> options) {
  return run_->change(std::move(options));
}
void Feed::drain() { run_->drain(); }
void Feed::cancel(DropReason reason) { run_->cancel(reason); }
std::optional<Feed::Outcome> Feed::outcome(Clock::time_point now) { return run_->outcome(now); }
bool Feed::join_until(Clock::time_point deadline) { return run_->join_until(deadline); }

}  // namespace framelane
