#include "pipeline/feed/feed_outputs.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>
#include <vector>

#include "pipeline/base/log.hpp"
#include "pipeline/base/redact.hpp"
#include "pipeline/base/url.hpp"
#include "pipeline/output/container.hpp"
#include "pipeline/output/hls_options.hpp"

namespace framelane {

/// However the thread of an output ends, nobody waits for it any longer.
class FeedOutputs::ThreadScope {
 public:
  ThreadScope(FeedOutputs& outputs, Part& part) : outputs_(outputs), part_(part) {}
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;
  ~ThreadScope() {
    {
      const std::lock_guard lock(outputs_.mutex_);
      part_.ended = true;
    }
    outputs_.changed_.notify_all();
  }

 private:
  FeedOutputs& outputs_;
  Part& part_;
};

FeedOutputs::FeedOutputs(Parts parts, Spawn spawn)
    : parts_(std::move(parts)), spawn_(std::move(spawn)) {}

FeedOutputs::PartRef FeedOutputs::make(const OutputOptions& output,
                                       std::shared_ptr<OutputStats> stats,
                                       const FeedOptions& options, const Origin& origin) {
  RenditionGroup* group = nullptr;
  std::size_t rendition = 0;
  if (!output.master.empty()) {
    const auto hls_time = read_hls_options(output.name, output.options).time;
    const auto segment = RenditionGroup::slot_length(hls_time, output.gop.value_or(hls_time));
    group = &renditions_.try_emplace(output.master, output.master, segment).first->second;
    rendition = group->add(container_of(output).url, output.only == StreamKind::kAudio);
  }
  const bool blocks = blocks_when_full(options.on_full, is_live(options.input));
  auto made = std::make_unique<Output>(output, *stats, parts_.stats, parts_.line_clock, blocks,
                                       parts_.retention, group, rendition);
  outputs_.push_back(std::make_shared<Part>(Part{.options = output,
                                                 .stats = std::move(stats),
                                                 .fanout = origin.fanout,
                                                 .output = std::move(made)}));
  return outputs_.back();
}

void FeedOutputs::start(bool recover) {
  const std::lock_guard lock(mutex_);
  started_ = true;
  for (const PartRef& part : outputs_) {
    spawn_("out-" + part->options.name, [this, part, recover] {
      const ThreadScope scope(*this, *part);
      run(*part, recover);
    });
  }
}

void FeedOutputs::change(const FeedOptions& options, const Origins& origins) {
  const std::lock_guard lock(mutex_);
  std::vector<PartRef> gone(outputs_.begin(), outputs_.end());
  std::erase_if(gone, [](const PartRef& part) { return part->leaves_since.has_value(); });
  const std::vector<std::shared_ptr<OutputStats>> stats = parts_.stats.outputs();
  for (std::size_t i = 0; i < options.outputs.size(); ++i) {
    const OutputOptions& output = options.outputs[i];
    const PartRef old = find(output);
    std::erase(gone, old);
    const bool failed = old != nullptr && old->stats->state().first == FeedState::kFailed;
    const bool same_origin = old != nullptr && old->fanout == origins.at(output.from).fanout;
    // Renditions are tried again with their feed.
    if (same_origin && (!failed || !output.master.empty())) {
      if (old->options == output) continue;
      if (can_change_in_place(old->options, output)) {
        log::info("feed {}: output {}: goes on with other settings", parts_.feed, output.name);
        old->output->change(output);
        old->options = output;
        continue;
      }
    }
    if (started_) {
      log::info("feed {}: output {}: {}", parts_.feed, output.name,
                old == nullptr ? "is new"
                : failed       ? "is tried again"
                               : "has changed");
    }
    take_place(make(output, stats[i], options, origins.at(output.from)), old, origins);
  }
  for (const PartRef& part : gone) {
    log::info("feed {}: output {}: is no longer in the configuration", parts_.feed,
              part->options.name);
    remove(part, origins);
  }
}

/// The present output of this name; of renditions the one of the same encode.
FeedOutputs::PartRef FeedOutputs::find(const OutputOptions& output) const {
  const auto found = std::ranges::find_if(outputs_, [&](const PartRef& part) {
    if (part->leaves_since || part->options.name != output.name) return false;
    return output.master.empty() ||
           (part->options.from == output.from && part->options.only == output.only);
  });
  return found != outputs_.end() ? *found : nullptr;
}

void FeedOutputs::begin_to_leave(Part& part) {
  part.leaves_since = Clock::now();
  part.lost_before_leaving = part.stats->lost_at_stop();
}

/// `old`: the output in whose place this one comes; or null.
void FeedOutputs::take_place(const PartRef& part, const PartRef& old, const Origins& origins) {
  PartRef replaced;
  if (old != nullptr && old->fanout == part->fanout) {
    begin_to_leave(*old);
    old->keyframe_by = Clock::now() + parts_.deadlines.keyframe;
    replaced = old;
  } else if (old != nullptr) {
    remove(old, origins);
  }
  if (origins.at(part->options.from).idle) {  // so this does not wait, and no packet is missed
    part->fanout->add(part->output->inlet());
    part->attached = true;
  }
  if (!started_) return;
  part->follows = old;
  spawn_("out-" + part->options.name, [this, part, replaced]() mutable {
    const ThreadScope scope(*this, *part);
    if ((!part->attached && !attach(*part, replaced)) || !wait_for_place(*part)) {
      return part->output->inlet().end(PacketDrop::kStop);
    }
    // Its `keep` ends with it.
    replaced.reset();
    PartRef before;
    {
      const std::lock_guard lock(mutex_);
      before = std::move(part->follows);
    }
    before.reset();
    run(*part, part->stats->leaves_parts);
  });
}

void FeedOutputs::remove(const PartRef& part, const Origins& origins) {
  begin_to_leave(*part);
  const auto origin = origins.find(part->options.from);
  const bool encode_goes_on = origin != origins.end() && origin->second.fanout == part->fanout;
  if (!encode_goes_on) return;  // it ends with its encode
  spawn_("out-" + part->options.name, [this, part] {
    if (wait_for(part->attached)) part->fanout->remove(part->output->inlet());
  });
}

/// On a thread of the output's own, since it waits while an output is full.
bool FeedOutputs::attach(Part& part, const PartRef& replaced) {
  if (replaced != nullptr) {
    if (!wait_for(replaced->attached)) return false;
    part.fanout->replace(replaced->output->inlet(), part.output->inlet());
  } else {
    part.fanout->add(part.output->inlet());
  }
  {
    const std::lock_guard lock(mutex_);
    part.attached = true;
  }
  changed_.notify_all();
  return true;
}

/// Waits until a flag of a part is set.
bool FeedOutputs::wait_for(const bool& done) {
  std::unique_lock lock(mutex_);
  return changed_.wait(lock, parts_.cancel, [&] { return done; });
}

/// Waits until all outputs that had its place have ended. False if it has nothing to do: another
/// one has come in its place before it got a packet, or the feed is cancelled.
bool FeedOutputs::wait_for_place(const Part& part) {
  bool is_free = false;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, parts_.cancel, [&] {
    const Part* before = part.follows.get();
    while (before != nullptr && before->ended) before = before->follows.get();
    is_free = before == nullptr;
    const OutputInlet& inlet = part.output->inlet();
    return is_free || (inlet.left() && inlet.empty());
  });
  return is_free;
}

void FeedOutputs::run(Part& part, bool recovers) {
  Output& output = *part.output;
  if (recovers && output.options().existing == Existing::kNumber) {
    output.recover_part_files(parts_.cancel);
  }
  output.run(parts_.cancel, parts_.once, parts_.drain);
  const std::lock_guard lock(mutex_);
  if (part.keyframe_by && Clock::now() > *part.keyframe_by && output.inlet().gets_pictures()) {
    log::warn(
        "feed {}: output {}: no keyframe has come at which another could take its place; it ends "
        "without, and what comes before the next keyframe is lost",
        parts_.feed, output.options().name);
  }
  const std::uint64_t lost = part.stats->lost_at_stop() - part.lost_before_leaving;
  if (!part.leaves_since || lost == 0) return;
  log::warn(
      "feed {}: output {}: {} packet{} not written before it left; see whether its peer or disk is "
      "slow",
      parts_.feed, output.options().name, lost, lost == 1 ? " was" : "s were");
}

void FeedOutputs::forget_left() {
  std::vector<PartRef> left;  // destroyed without the lock
  const auto now = Clock::now();
  const std::lock_guard lock(mutex_);
  for (auto it = outputs_.begin(); it != outputs_.end();) {
    const auto next = std::next(it);
    Part& part = **it;
    OutputInlet& inlet = part.output->inlet();
    if (part.leaves_since && part.ended) {
      // Its encode has gone before it: nobody publishes there any more, so this does not wait.
      if (!inlet.left() && part.attached && part.fanout->finished()) part.fanout->remove(inlet);
      if (inlet.left()) {
        left.push_back(std::move(*it));
        outputs_.erase(it);
      }
    } else if (part.leaves_since) {
      if (waits_for_keyframe(part, now)) part.leaves_since = now;
      if (now - *part.leaves_since > parts_.deadlines.drain) part.output->stop();
    }
    it = next;
  }
}

/// False also if it takes nothing of what waits for it: producers may wait for it then, so that no
/// keyframe can come.
bool FeedOutputs::waits_for_keyframe(Part& part, Clock::time_point now) {
  if (!part.keyframe_by || now >= *part.keyframe_by) return false;
  const OutputInlet& inlet = part.output->inlet();
  const std::uint64_t taken = inlet.taken();
  const bool takes_all = inlet.empty() || std::exchange(part.taken, taken) != taken;
  return takes_all && inlet.gets_pictures();
}

std::string FeedOutputs::find_stuck(Clock::time_point now) {
  std::string reason;
  const std::lock_guard lock(mutex_);
  for (const PartRef& part : outputs_) {
    Output& output = *part->output;
    if (!is_stuck(output.overdue(), part->overdue_since, now, parts_.deadlines)) continue;
    reason = "output " + output.options().name + " is stuck in a call on " +
             redact(output.options().url) +
             " that ignores its timeout; its thread is abandoned: check " +
             (local_path(output.options().url) ? "the disk or file server" : "the network");
    output.abandon(reason);
  }
  return reason;
}

void FeedOutputs::abandon() {
  const std::lock_guard lock(mutex_);
  for (const PartRef& part : outputs_) part->output->inlet().end(PacketDrop::kStop);
}

}  // namespace framelane
