// How a run goes on with other options.
#include <algorithm>
#include <exception>
#include <iterator>
#include <utility>

#include "pipeline/base/failure.hpp"
#include "pipeline/base/log.hpp"
#include "pipeline/feed/feed_run.hpp"

namespace framelane {

bool FeedRun::change(std::shared_ptr<const FeedOptions> options) {
  forget_left();
  std::unique_lock lock(mutex_);
  if (running_ == 0 || stopped_ || outcome_ || !hold_parts()) return false;
  std::optional<FeedError> failure;
  try {
    change_parts(options);
    present_ = std::move(options);
  } catch (const FeedError& error) {  // a thread does not start
    failure = error;
  } catch (const std::exception& error) {
    failure = FeedError(FeedFault::kMemory, shortage_text(error.what()));
  }
  release_parts();
  lock.unlock();
  if (failure) fail(failure->code(), failure->what());
  return true;
}

/// Requires mutex_.
void FeedRun::change_parts(const std::shared_ptr<const FeedOptions>& options) {
  RunChanges::Change change{.options = options, .added = {}, .removed = {}};
  if (tap_ && present_->input.mask != options->input.mask) change.masks = tap_->expect_masks();
  std::vector<EncodeRef> added;
  for (const EncodeRef& part : encodes_) {
    if (part->leaves) continue;
    const std::string& name = part->options->name;
    const auto present = std::ranges::find(present_->encodes, name, &EncodeOptions::name);
    const auto next = std::ranges::find(options->encodes, name, &EncodeOptions::name);
    const bool gone = next == options->encodes.end();
    if (!gone && can_become(*present, *next)) continue;
    log::info("feed {}: encode {}: {}", options_.name, name,
              gone ? "is no longer in the configuration" : "becomes another one");
    part->leaves = true;
    change.removed.push_back(part->route.get());
  }
  for (std::size_t i = 0; i < options->encodes.size(); ++i) {
    const EncodeOptions& encode = options->encodes[i];
    if (std::ranges::any_of(encodes_, [&](const EncodeRef& part) {
          return !part->leaves && part->options->name == encode.name;
        })) {
      continue;
    }
    log::info("feed {}: encode {}: is new", options_.name, encode.name);
    const int consumer = encode.copy_video ? 0 : ring_->add_consumer();
    added.push_back(make_encode(options, i, consumer));
    change.added.push_back(added.back()->route.get());
    encodes_.push_back(added.back());
    start_encode(added.back());
  }
  outputs_.change(*options, origins(added));
  const bool same_for_source = present_->input == options->input &&
                               present_->encodes == options->encodes &&
                               present_->on_full == options->on_full;
  if (same_for_source || changes_.post(std::move(change))) return;
  // The source has ended, and with it what is removed. Nothing comes to what is added: the ring
  // tells that to those that encode.
  for (const EncodeRef& part : added) {
    if (part->encode == nullptr) part->route->fanout->finish();
  }
}

/// Lets go of outputs and encodes that have left, and of the threads that have ended.
void FeedRun::forget_left() {
  outputs_.forget_left();
  std::list<std::shared_ptr<Thread>> ended;
  {
    const std::lock_guard lock(mutex_);
    if (running_ == 0) return;
    const auto leaves = [](const EncodeRef& part) { return part->leaves; };
    if (std::ranges::any_of(encodes_, leaves) && hold_parts()) {
      forget_left_encodes();
      release_parts();
    }
    for (auto thread = threads_.begin(); thread != threads_.end();) {
      const auto next = std::next(thread);
      if ((*thread)->finished) ended.splice(ended.end(), threads_, thread);
      thread = next;
    }
  }
  for (const std::shared_ptr<Thread>& thread : ended) thread->thread.join();
}

/// Requires mutex_, and the parts to be held.
void FeedRun::forget_left_encodes() {
  for (EncodeRoute* const route : changes_.take_gone()) {
    std::ranges::find(encodes_, route, [](const EncodeRef& part) { return part->route.get(); })
        ->get()
        ->let_go = true;
  }
  for (auto it = encodes_.begin(); it != encodes_.end();) {
    const auto next = std::next(it);
    if ((*it)->let_go && (*it)->route->fanout->finished()) {
      // Its frames' memory goes on a thread that can be abandoned: a GPU may hold it up.
      try {
        spawn("end-" + (*it)->options->name, [part = *it] { part->route.reset(); });
        encodes_.erase(it);
      } catch (const std::exception&) {
        return;  // there is no thread, or no memory, now
      }
    }
    it = next;
  }
}

/// `idle`: those to which nothing is published yet.
FeedOutputs::Origins FeedRun::origins(const std::vector<EncodeRef>& idle) const {
  FeedOutputs::Origins result;
  for (const EncodeRef& part : encodes_) {
    if (part->leaves) continue;
    const bool is_idle = std::ranges::find(idle, part) != idle.end();
    result[part->options->name] = {.fanout = part->route->fanout, .idle = is_idle};
  }
  return result;
}

}  // namespace framelane
