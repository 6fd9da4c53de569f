#include "daemon/supervised_feed.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

#include "pipeline/base/log.hpp"
#include "pipeline/encode/nvenc.hpp"

namespace framelane {
namespace {

// Container runtimes kill 10 s after SIGTERM.
static_assert(SupervisedFeed::kDrainTime + FeedDeadlines{}.after_cancel + Retention::kStopTime <
              std::chrono::seconds(10));

/// A failed feed is started again after one second, then after longer and longer waits.
constexpr BackoffOptions kRestart{std::chrono::seconds(1), std::chrono::seconds(60)};

/// On the feed's own GPU.
bool may_use_nvenc(const FeedOptions& options) {
  const auto on_feeds_gpu = [](const CodecCandidate& codec) {
    return is_nvenc(codec) && std::ranges::none_of(codec.options, [&](const AvOption& option) {
             return chooses_gpu(codec, option);
           });
  };
  return std::ranges::any_of(options.encodes, [&](const EncodeOptions& encode) {
    return std::ranges::any_of(encode.codecs, on_feeds_gpu);
  });
}

FeedStats::Shape shape_of(const FeedOptions& options) {
  FeedStats::Shape shape;
  shape.lanes = converts(options) ? options.lanes : 0;
  for (const EncodeOptions& encode : options.encodes) {
    shape.encodes.push_back({encode.name, encode.copy_video, encode.transcodes_audio()});
  }
  for (const OutputOptions& output : options.outputs) shape.outputs.push_back(output.name);
  return shape;
}

bool reads_the_same(InputOptions a, const InputOptions& b) {
  a.reconnect = b.reconnect;
  a.mask = b.mask;
  return a == b;
}

}  // namespace

SupervisedFeed::SupervisedFeed(FeedOptions options, std::shared_ptr<DeviceSet> devices, Now now,
                               std::function<void()> wake, FeedDeadlines deadlines,
                               RereadOptions reread, std::shared_ptr<Retention> retention,
                               std::shared_ptr<FlightRecorder> recorder, OnCompletedFile on_file)
    : options_(std::make_shared<const FeedOptions>(std::move(options))),
      stats_(std::make_shared<FeedStats>(options_->name, shape_of(*options_), std::move(recorder),
                                         std::move(on_file))),
      devices_(std::move(devices)),
      now_(std::move(now)),
      wake_(std::move(wake)),
      deadlines_(deadlines),
      retention_(std::move(retention)),
      loss_before_run_(*stats_),
      backoff_(kRestart) {
  reread_.emplace(options_->name, std::move(reread));
}

bool SupervisedFeed::reload(FeedOptions options, RereadOptions reread) {
  reread_->abandon();
  reread_.emplace(options.name, std::move(reread));
  options.once = options_->once;
  const bool same = options == (next_options_ ? *next_options_ : *options_);
  if (same && !failed_ && !has_failed_output()) return false;
  if (next_options_ == nullptr && change_run(options)) return true;
  if (same && !failed_) return false;  // its run ends already
  next_options_ = std::make_shared<const FeedOptions>(std::move(options));
  if (has_ended() && reads_no_other_source()) {
    stay_ended();
    return true;
  }
  reloads_ = true;
  restart(now_());
  return true;
}

/// True if its source has come to its end: what it has read it would only read again.
bool SupervisedFeed::has_ended() const {
  return run_ == nullptr && !start_at_ && !failed_ && stats_->status().state == FeedState::kEnded;
}

/// True if the options of the last reload, of which there are some, read what the present ones do.
bool SupervisedFeed::reads_no_other_source() const {
  return reads_the_same(next_options_->input, options_->input);
}

/// Takes over the options of the last reload without another run.
void SupervisedFeed::stay_ended() {
  take_next_options();
  for (const auto& output : stats_->outputs()) {  // those that are new have no run
    if (output->state().first == FeedState::kConnecting) {
      output->set_state(output->begin_run(), FeedState::kEnded, "");
    }
  }
}

/// True if an output has failed that change_run() begins again.
bool SupervisedFeed::has_failed_output() const {
  if (run_ == nullptr || next_options_ != nullptr) return false;
  const auto outputs = stats_->outputs();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const bool is_rendition = !options_->outputs[i].master.empty();
    if (!is_rendition && outputs[i]->state().first == FeedState::kFailed) return true;
  }
  return false;
}

/// True if the run goes on with these options.
bool SupervisedFeed::change_run(const FeedOptions& options) {
  if (run_ == nullptr || drain_until_ || !can_change_in_run(*options_, options)) return false;
  auto next = std::make_shared<const FeedOptions>(options);
  stats_->reshape(shape_of(options));
  if (!run_->change(next)) return false;
  loss_before_run_ = StopLoss(*stats_);  // what a new encode has not had is no loss
  const std::lock_guard lock(mutex_);
  options_ = std::move(next);
  return true;
}

void SupervisedFeed::leave() {
  log::info("feed {}: is no longer in the configuration", options_->name);
  stopping_ = true;
  reloads_ = true;
  start_at_.reset();
  reread_->abandon();
  if (run_ != nullptr) restart(now_());
}

/// Ends the run, if there is one. The next follows at once.
void SupervisedFeed::restart(Clock::time_point now) {
  if (drain_until_) return;  // it is being restarted already
  if (run_ == nullptr) {
    start_at_ = now;
    return;
  }
  run_->drain();
  drain_until_ = now + kDrainTime;
}

void SupervisedFeed::take_next_options() {
  if (next_options_ == nullptr) return;
  if (next_options_->device != options_->device) devices_->forget(options_->name);
  stats_->reshape(shape_of(*next_options_));
  const std::lock_guard lock(mutex_);
  options_ = std::exchange(next_options_, nullptr);
}

void SupervisedFeed::start() {
  tap_->close();  // before other options are seen: they may have other masks
  take_next_options();
  FeedOptions options = *options_;
  // A run that has ended may have left files that had to wait. A lock guards those that an
  // abandoned thread still holds. Without need the archive's folders are not read again.
  options.recover = std::ranges::any_of(
      stats_->outputs(), [](const auto& output) { return output->leaves_parts.load(); });
  start_at_.reset();
  reloads_ = false;
  failed_ = false;
  loss_before_run_ = StopLoss(*stats_);
  try {
    const bool anew = std::exchange(place_anew_, false);
    std::shared_ptr<Device> device = devices_->cpu();
    if (converts(options)) {
      device = devices_->place(
          options.name, {.choice = options.device, .nvenc = may_use_nvenc(options), .anew = anew});
    }
    const auto tap = std::make_shared<SnapshotTap>();
    {
      const std::lock_guard lock(mutex_);
      tap_ = tap;
    }
    run_ = Feed::start(std::move(options), stats_, std::move(device), wake_, deadlines_, retention_,
                       tap);
  } catch (const FeedError& error) {
    on_failure(error.code(), error.what());
  } catch (const std::exception& error) {
    on_failure(FeedFault::kInternal, error.what());
  }
}

bool SupervisedFeed::turn() {
  const auto now = now_();
  if (restart_requested_.exchange(false) && !drain_until_ && !stopping_) {
    log::info("feed {}: restarting on request", options_->name);
    restart(now);
  }
  if (run_ != nullptr && !drain_until_) leave_lost_gpu(now);
  if (run_ != nullptr) {
    if (drain_until_ && now >= *drain_until_) cancel_late_run();
    if (const std::optional<Feed::Outcome> outcome = run_->outcome(Clock::now())) {
      run_.reset();
      on_outcome(*outcome);
    } else if (stats_->status().state == FeedState::kRunning) {
      backoff_.succeeded(now);
    }
  }
  if (start_at_ && now >= *start_at_ && may_start() && reread_options(now)) start();
  return run_ != nullptr || start_at_.has_value();
}

/// A feed whose GPU is lost goes on on the CPU. If there is another GPU, it is better started again
/// there; but a file would begin anew.
void SupervisedFeed::leave_lost_gpu(Clock::time_point now) {
  if (!is_live(options_->input) || options_->once) return;
  if (!devices_->can_move(options_->name, options_->device)) return;
  log::warn("feed {}: its GPU is lost; starting it again on another", options_->name);
  stats_->count_restart(FeedFault::kDevice);
  restart(now);
}

void SupervisedFeed::drain() {
  stopping_ = true;
  if (run_ != nullptr) run_->drain();
}

bool SupervisedFeed::wait_for(Clock::duration time) {
  return run_ == nullptr || run_->join_until(Clock::now() + time);
}

void SupervisedFeed::cancel() {
  if (run_ != nullptr && !run_->outcome(Clock::now())) cancel_late_run();
}

void SupervisedFeed::finish() {
  reread_->abandon();
  if (run_ == nullptr) return;
  std::optional<Feed::Outcome> outcome;
  while (!(outcome = run_->outcome(Clock::now()))) wait_for(std::chrono::milliseconds(250));
  run_.reset();
  on_outcome(*outcome);
}

bool SupervisedFeed::may_start() {
  const bool too_many = stats_->abandoned_runs >= kMaxAbandonedRuns;
  if (too_many && !too_many_abandoned_) {
    const std::string reason = fmt::format(
        "{} of its runs are stuck in calls that do not end; it goes on when one of "
        "them does, or when framelane is started again ({})",
        kMaxAbandonedRuns, stats_->status().reason);
    stats_->set_state(FeedState::kBackoff, reason, fault_code(FeedFault::kInternal));
    log::error("feed {}: {}", options_->name, reason);
  }
  too_many_abandoned_ = too_many;
  return !too_many;
}

/// True when the next run has its options: those that were read again, or those of the last run.
bool SupervisedFeed::reread_options(Clock::time_point now) {
  if (next_options_ != nullptr) return true;  // they have just been read
  FeedOptions options;
  switch (reread_->poll(now, options)) {
    case OptionsReread::Progress::kReading:
      return false;
    case OptionsReread::Progress::kNothing:
      return true;
    case OptionsReread::Progress::kRead:
      break;
  }
  options.once = options_->once;
  const std::lock_guard lock(mutex_);
  options_ = std::make_shared<const FeedOptions>(std::move(options));
  return true;
}

void SupervisedFeed::on_outcome(const Feed::Outcome& outcome) {
  const bool restarting = std::exchange(drain_until_, std::nullopt).has_value();
  if (std::exchange(late_, false)) warn_of_loss();
  // The reload came when the source had just ended.
  const bool stays_ended = outcome.kind == Feed::Outcome::Kind::kEnded &&
                           next_options_ != nullptr && reads_no_other_source();
  if (restarting && !stopping_ && !stays_ended) {
    if (outcome.kind == Feed::Outcome::Kind::kFailed) {
      const log::FaultScope scope(fault_code(outcome.fault), outcome.reason);
      log::error("feed {}: {}", options_->name, outcome.reason);
    }
    start_at_ = now_();
  } else if (outcome.kind == Feed::Outcome::Kind::kFailed) {
    on_failure(outcome.fault, outcome.reason);
  } else {
    stats_->set_state(FeedState::kEnded, "");
    log::info("feed {}: ended", options_->name);
    if (stays_ended) stay_ended();
  }
}

void SupervisedFeed::on_failure(FeedFault fault, const std::string& reason) {
  place_anew_ = fault == FeedFault::kMemory;
  const log::FaultScope scope(fault_code(fault), reason);
  const bool final = stopping_ || options_->once || index_of(fault) >= kFeedFaultNames.size();
  if (final) {
    failed_ = true;
    stats_->set_state(FeedState::kFailed, reason, fault_code(fault));
    log::error("feed {}: failed: {}", options_->name, reason);
    return;
  }
  const auto wait = backoff_.next();
  stats_->count_restart(fault);
  stats_->set_state(FeedState::kBackoff, reason, fault_code(fault));
  start_at_ = now_() + wait;
  log::error("feed {}: {}; restarting it in {:.1f} s", options_->name, reason,
             std::chrono::duration<double>(wait).count());
}

void SupervisedFeed::cancel_late_run() {
  late_ = true;
  run_->cancel(reloads_ ? DropReason::kReload : DropReason::kStop);
}

/// A warning, because a stop moves the counters when nobody may be left to scrape them.
void SupervisedFeed::warn_of_loss() const {
  const std::string loss = StopLoss(*stats_).since(loss_before_run_, kDrainTime);
  if (!loss.empty()) log::warn("feed {}: {}", options_->name, loss);
}

}  // namespace framelane
