// How a run changes while it goes on: its outputs, and what is masked and drawn.
#include <algorithm>
#include <exception>
#include <iterator>
#include <utility>

#include "pipeline/base/failure.hpp"
#include "pipeline/base/log.hpp"
#include "pipeline/feed/feed_run.hpp"
#include "pipeline/output/container.hpp"
#include "pipeline/output/hls_options.hpp"

namespace framelane {
namespace {

std::uint64_t packets_lost(const OutputStats& stats) {
  return stats.packets_dropped[index_of(PacketDrop::kStop)] +
         stats.packets_dropped[index_of(PacketDrop::kWriteFailed)];
}

}  // namespace

FeedRun::OutputPart& FeedRun::make_output(const OutputOptions& output,
                                          std::shared_ptr<OutputStats> stats) {
  RenditionGroup* group = nullptr;
  std::size_t rendition = 0;
  if (!output.master.empty()) {
    const auto hls_time = read_hls_options(output.name, output.options).time;
    const auto segment = RenditionGroup::slot_length(hls_time, output.gop.value_or(hls_time));
    group = &renditions_.try_emplace(output.master, output.master, segment).first->second;
    rendition = group->add(container_of(output).url, output.only == StreamKind::kAudio);
  }
  const bool blocks = blocks_when_full(options_.on_full, is_live(options_.input));
  auto made = std::make_unique<Output>(output, *stats, *stats_, line_clock_, blocks,
                                       retention_.get(), group, rendition);
  outputs_.push_back({.stats = std::move(stats), .output = std::move(made)});
  return outputs_.back();
}

/// The body of an output's thread.
void FeedRun::run_output(OutputPart& part, bool recovers) {
  Output& output = *part.output;
  if (recovers && output.options().existing == Existing::kNumber) {
    output.recover_part_files(cancel_.get_token());
  }
  output.run(cancel_.get_token(), options_.once, read_stop_.get_token());
  const std::lock_guard lock(mutex_);
  const std::uint64_t lost = packets_lost(*part.stats) - part.lost_before_leaving;
  if (!part.leaves_since || lost == 0) return;
  log::warn(
      "feed {}: output {}: {} packet{} not written before it left; see whether its peer or disk is "
      "slow",
      options_.name, output.options().name, lost, lost == 1 ? " was" : "s were");
}

/// Requires FeedRun::mutex_.
void FeedRun::begin_to_leave(OutputPart& part) {
  part.leaves_since = Clock::now();
  part.lost_before_leaving = packets_lost(*part.stats);
}

bool FeedRun::change(const FeedOptions& options) {
  forget_left_outputs();
  std::unique_lock lock(mutex_);
  if (running_ == 0 || stopped_ || outcome_ || !hold_parts()) return false;
  std::optional<FeedError> failure;
  try {
    change_parts(options);
    // If nothing of it differs, nothing is made anew.
    FeedOptions style = style_;
    style.outputs = options.outputs;
    if (frames_ != nullptr && style != options) {
      log::info("feed {}: the mask or what is drawn has changed", options_.name);
      frames_->restyle(std::make_shared<const FeedOptions>(options));
      style_ = options;
    }
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
void FeedRun::change_parts(const FeedOptions& options) {
  std::map<std::string, OutputPart*> present;
  for (OutputPart& part : outputs_) {
    const OutputOptions& output = part.output->options();
    if (!part.leaves_since && output.master.empty()) present.emplace(output.name, &part);
  }
  const std::vector<std::shared_ptr<OutputStats>> stats = stats_->outputs();
  for (std::size_t i = 0; i < options.outputs.size(); ++i) {
    const OutputOptions& output = options.outputs[i];
    if (!output.master.empty()) continue;  // renditions are as before
    const auto found = present.find(output.name);
    OutputPart* const old = found != present.end() ? found->second : nullptr;
    if (old != nullptr) present.erase(found);
    const bool failed = old != nullptr && old->stats->state().first == FeedState::kFailed;
    if (old != nullptr && !failed && old->output->options() == output) continue;
    log::info("feed {}: output {}: {}", options_.name, output.name,
              old == nullptr ? "is new"
              : failed       ? "is tried again"
                             : "has changed");
    add_output(make_output(output, stats[i]), old);
  }
  for (const auto& [name, part] : present) {
    log::info("feed {}: output {}: is no longer in the configuration", options_.name, name);
    remove_output(*part);
  }
}

/// `predecessor`: the output in whose place this one comes; or null. It ends first, since both may
/// write the same files. Requires mutex_.
void FeedRun::add_output(OutputPart& part, OutputPart* predecessor) {
  part.attached = false;
  OutputPart* replaced = nullptr;
  std::shared_ptr<Thread> before;
  if (predecessor != nullptr) {
    before = predecessor->thread;
    if (&fanout_of(*predecessor) == &fanout_of(part)) {
      begin_to_leave(*predecessor);
      replaced = predecessor;
    } else {
      remove_output(*predecessor);
    }
  }
  part.thread = spawn("out-" + part.output->options().name, [this, &part, before, replaced] {
    attach(part, replaced);
    if (before != nullptr) {
      std::unique_lock lock(mutex_);
      finished_.wait(lock, [&] { return before->finished; });
    }
    run_output(part, part.stats->leaves_parts);
  });
}

/// On a thread of the output's own, since it waits while an output is full.
void FeedRun::attach(OutputPart& part, OutputPart* replaced) {
  PacketFanout& fanout = fanout_of(part);
  if (replaced != nullptr) {
    wait_attached(*replaced);
    fanout.replace(replaced->output->inlet(), part.output->inlet());
  } else {
    fanout.add(part.output->inlet());
  }
  {
    const std::lock_guard lock(mutex_);
    part.attached = true;
  }
  finished_.notify_all();
}

void FeedRun::wait_attached(const OutputPart& part) {
  std::unique_lock lock(mutex_);
  finished_.wait(lock, [&] { return part.attached; });
}

/// Requires mutex_.
void FeedRun::remove_output(OutputPart& part) {
  begin_to_leave(part);
  spawn("out-" + part.output->options().name, [this, &part] {
    wait_attached(part);
    fanout_of(part).remove(part.output->inlet());
  });
}

PacketFanout& FeedRun::fanout_of(const OutputPart& part) {
  const auto route = std::ranges::find_if(routes_, [&](const EncodeRoute& candidate) {
    return candidate.options->name == part.output->options().from;
  });
  return *route->fanout;
}

/// Lets go of the outputs that have left, and of the threads that have ended.
void FeedRun::forget_left_outputs() {
  std::list<OutputPart> left;
  std::list<std::shared_ptr<Thread>> ended;
  {
    const std::lock_guard lock(mutex_);
    if (running_ == 0) return;
    for (auto part = outputs_.begin(); part != outputs_.end();) {
      const auto next = std::next(part);
      if (part->leaves_since && part->thread->finished && part->output->inlet().left()) {
        left.splice(left.end(), outputs_, part);
      } else if (part->leaves_since && Clock::now() - *part->leaves_since > deadlines_.drain) {
        part->output->stop();
      }
      part = next;
    }
    for (auto thread = threads_.begin(); thread != threads_.end();) {
      const auto next = std::next(thread);
      if ((*thread)->finished) ended.splice(ended.end(), threads_, thread);
      thread = next;
    }
  }
  for (const std::shared_ptr<Thread>& thread : ended) thread->thread.join();
}

}  // namespace framelane
