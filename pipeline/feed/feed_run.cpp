#include "pipeline/feed/feed_run.hpp"

#include <pthread.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "pipeline/base/failure.hpp"
#include "pipeline/base/redact.hpp"

namespace framelane {

FeedRun::FeedRun(FeedOptions options, std::shared_ptr<FeedStats> stats,
                 std::shared_ptr<Device> device, std::function<void()> on_done)
    : options_(std::move(options)),
      stats_(std::move(stats)),
      device_(std::move(device)),
      on_done_(std::move(on_done)) {
  make_parts();
}

void FeedRun::make_parts() {
  auto output_stats = stats_->outputs().begin();
  const bool blocks = blocks_when_full(options_.on_full, is_live(options_.input));
  for (const OutputOptions& output : options_.outputs) {
    outputs_.push_back(std::make_unique<Output>(output, *output_stats++, *stats_, blocks));
  }
  outputs_overdue_since_.resize(outputs_.size());
  for (const EncodeOptions& encode : options_.encodes) {
    Branch branch;
    branch.options = &encode;
    std::vector<OutputInlet*> fed;
    for (const std::unique_ptr<Output>& output : outputs_) {
      if (output->options().from != encode.name) continue;
      fed.push_back(&output->inlet());
      branch.global_header |= needs_global_header(output->options());
    }
    branch.fanout = std::make_unique<PacketFanout>(std::move(fed));
    if (!encode.copy_video) branch.pool = std::make_unique<FramePool>();
    branches_.push_back(std::move(branch));
  }
  int frame_encodes = 0;
  for (std::size_t i = 0; i < branches_.size(); ++i) {
    Branch& branch = branches_[i];
    if (branch.options->copy_video) {
      encodes_.push_back(nullptr);
    } else {
      encodes_.push_back(std::make_unique<Encode>(*branch.options, frame_encodes++,
                                                  branch.global_header, stats_->encode(i), *stats_,
                                                  *branch.fanout));
    }
  }
  if (frame_encodes > 0) {
    ring_ = std::make_unique<FrameRing>(options_.ring, frame_encodes, *stats_);
    stats_->set_device(device_->name());
    stage_ = device_->make_stage(*stats_, options_.slices);
  }
  ingest_ = std::make_unique<Ingest>(Ingest::Parts{options_, stats_, branches_, source_calls_,
                                                   stage_calls_, ring_.get(), stage_.get(),
                                                   cancel_reason_});
}

/// Every frame is accounted for: what becomes of the parts changes nothing.
void FeedRun::settle() {
  const std::lock_guard lock(mutex_);
  if (outcome_) return;
  outcome_ = Feed::Outcome{stopped_ ? Feed::Outcome::Kind::kStopped : Feed::Outcome::Kind::kEnded,
                           FeedFault::kInternal,
                           {}};
}

/// What a GPU may hold up goes on the run's last thread, which can be abandoned: letting go of
/// memory waits for the work of all feeds.
void FeedRun::free_parts() {
  const CallScope freeing(stage_calls_, Ingest::kStageCall);
  ingest_.reset();
  encodes_.clear();
  stage_.reset();
  branches_.clear();
}

void FeedRun::start() {
  // The threads wait on the mutex until all of them stand, so that the last to end knows it is.
  const std::lock_guard lock(mutex_);
  for (const std::unique_ptr<Output>& output : outputs_) {
    spawn("out-" + output->options().name, [this, &output = *output] {
      if (options_.recover && output.options().existing == Existing::kNumber) {
        output.recover_part_files(cancel_.get_token());
      }
      output.run(cancel_.get_token(), options_.once);
    });
  }
  for (std::size_t i = 0; i < branches_.size(); ++i) {
    if (encodes_[i] == nullptr) continue;
    spawn("enc-" + branches_[i].options->name,
          [this, i] { encode_thread(branches_[i], *encodes_[i]); });
  }
  spawn("source", [this] { source_thread(); });
}

void FeedRun::spawn(const std::string& name, std::function<void()> body) {
  const std::size_t index = threads_.size();
  auto main = [self = shared_from_this(), index, name, body = std::move(body)] {
    // The kernel keeps 15 characters: enough to tell the threads of one process apart in top.
    pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
    { const std::lock_guard started(self->mutex_); }
    try {
      body();
    } catch (const FeedError& error) {
      self->fail(error.code(), error.what());
    } catch (const IoError& error) {
      self->fail(FeedFault::kSource, error.what());
    } catch (const std::bad_alloc&) {
      self->fail(FeedFault::kMemory, "out of memory");
    } catch (const std::exception& error) {
      self->fail(FeedFault::kInternal, error.what());
    }
    if (--self->bodies_ == 0) {
      self->settle();
      self->free_parts();
    }
    std::function<void()> done;
    {
      const std::lock_guard lock(self->mutex_);
      self->threads_[index].finished = true;
      if (--self->running_ == 0) {
        done = self->on_done_;
        if (self->abandoned_) --self->stats_->abandoned_runs;
      }
    }
    self->finished_.notify_all();
    if (done) done();
  };
  threads_.push_back({std::thread(std::move(main)), false});
  ++running_;
  ++bodies_;
}

void FeedRun::source_thread() {
  // What was read before a source is lost for good is delivered all the same.
  std::optional<std::string> lost;
  try {
    ingest_->run(cancel_.get_token());
  } catch (const IoError& error) {
    lost = error.what();
  }
  if (lost) {
    const std::lock_guard lock(mutex_);
    if (!outcome_) {
      outcome_ = Feed::Outcome{Feed::Outcome::Kind::kFailed, FeedFault::kSource, *lost};
    }
  }
  if (ring_ != nullptr) ring_->close();
  for (Branch& branch : branches_) {
    if (branch.options->copy_video) branch.fanout->finish();
  }
}

void FeedRun::encode_thread(Branch& branch, Encode& encode) {
  encode.run(*ring_, *stage_, cancel_.get_token(), cancel_reason_);
  branch.fanout->finish();
}

void FeedRun::fail(FeedFault fault, const std::string& reason) {
  {
    const std::lock_guard lock(mutex_);
    if (!outcome_) outcome_ = Feed::Outcome{Feed::Outcome::Kind::kFailed, fault, reason};
  }
  cancel(DropReason::kFeedFailed);
}

void FeedRun::drain() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  read_stop_.request_stop();
}

void FeedRun::cancel(DropReason reason) {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    if (!cancelled_at_) {
      cancelled_at_ = std::chrono::steady_clock::now();
      cancel_reason_ = reason;
    }
  }
  read_stop_.request_stop();
  cancel_.request_stop();
  if (ring_ != nullptr) ring_->close();
}

// Counted from when it was first seen: after the process was stopped for a while, every deadline
// has passed, and the call in hand still has to find that out.
bool FeedRun::is_stuck(bool overdue, OverdueSince& since) {
  const auto now = std::chrono::steady_clock::now();
  if (!overdue) {
    since.reset();
    return false;
  }
  if (!since) since = now;
  return now - *since >= kIgnoredDeadline;
}

void FeedRun::watch_calls() {
  FeedFault fault = FeedFault::kInternal;
  std::string reason;
  {
    const std::lock_guard lock(mutex_);
    if (running_ == 0 || cancelled_at_) return;
    if (is_stuck(source_calls_.overdue(), source_overdue_since_)) {
      reason = "reading " + redact(options_.input.url) +
               " is stuck in a call that ignores input.timeout; its thread is given up";
    }
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      Output& output = *outputs_[i];
      if (!is_stuck(output.overdue(), outputs_overdue_since_[i])) continue;
      reason = "output " + output.options().name + " is stuck in a call on " +
               redact(output.options().url) +
               " that ignores its timeout; its thread is given up: check the disk or file server";
      output.abandon(reason);
    }
    // What a GPU that is lost has not ended it does not end any more.
    const bool lost = device_->lost() && stage_calls_.under_way();
    if (is_stuck(lost || stage_calls_.overdue(), stage_overdue_since_)) {
      reason = "a call on " + device_->name() + " does not come to an end; its thread is given up";
      if (device_->has_copy_engines()) {
        fault = FeedFault::kDevice;
        reason += ": see what the kernel's log says of the driver";
      }
    }
  }
  if (reason.empty()) return;
  if (fault == FeedFault::kDevice) device_->lose("feed " + options_.name + ": " + reason);
  fail(fault, reason);
}

std::optional<Feed::Outcome> FeedRun::outcome() {
  watch_calls();
  const std::lock_guard lock(mutex_);
  if (running_ > 0 && !stuck()) return std::nullopt;
  if (outcome_) return outcome_;
  return Feed::Outcome{Feed::Outcome::Kind::kFailed, FeedFault::kInternal,
                       "a thread is stuck in a call that does not end"};
}

bool FeedRun::join_until(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  return finished_.wait_until(lock, deadline, [this] { return running_ == 0; });
}

bool FeedRun::stuck() const {
  return cancelled_at_ && std::chrono::steady_clock::now() - *cancelled_at_ >= kCancelTime;
}

bool FeedRun::join_cancelled() {
  std::chrono::steady_clock::time_point deadline;
  {
    const std::lock_guard lock(mutex_);
    deadline = cancelled_at_.value_or(std::chrono::steady_clock::now()) + kCancelTime;
  }
  return join_until(deadline);
}

int FeedRun::abandon() {
  const std::lock_guard lock(mutex_);
  on_done_ = nullptr;  // who would be told may be gone when an abandoned thread comes loose
  abandoned_ = running_ > 0;
  if (abandoned_) ++stats_->abandoned_runs;
  int abandoned = 0;
  for (Thread& thread : threads_) {
    if (thread.finished) {
      thread.thread.join();  // it has at most on_done_ left to call
    } else {
      thread.thread.detach();
      ++abandoned;
    }
  }
  return abandoned;
}

}  // namespace framelane
