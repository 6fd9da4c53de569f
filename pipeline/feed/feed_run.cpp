#include "pipeline/feed/feed_run.hpp"

#include <pthread.h>

#include <algorithm>
#include <exception>
#include <iterator>
#include <new>
#include <system_error>
#include <utility>

#include "pipeline/base/failure.hpp"
#include "pipeline/base/log.hpp"
#include "pipeline/base/redact.hpp"

namespace framelane {
namespace {

/// `call`: what an encode does in a codec.
std::string endless_call(const EncodeOptions& encode, const std::string& call) {
  return "encode " + encode.name + ": " + call +
         " does not come to an end; its thread is abandoned: check the load of this machine and, "
         "if the encoder is hardware, its driver; or name another codec";
}

}  // namespace

FeedRun::FeedRun(FeedOptions options, std::shared_ptr<FeedStats> stats,
                 std::shared_ptr<Device> device, std::function<void()> on_done,
                 FeedDeadlines deadlines, std::shared_ptr<Retention> retention,
                 std::shared_ptr<SnapshotTap> tap)
    : options_(std::move(options)),
      stats_(std::move(stats)),
      device_(std::move(device)),
      on_done_(std::move(on_done)),
      deadlines_(deadlines),
      retention_(std::move(retention)),
      tap_(std::move(tap)),
      line_clock_(options_.split_after),
      outputs_({.feed = options_.name,
                .once = options_.once,
                .stats = *stats_,
                .line_clock = line_clock_,
                .retention = retention_.get(),
                .deadlines = deadlines_,
                .cancel = cancel_.get_token(),
                .drain = read_stop_.get_token()},
               [this](const std::string& name, std::function<void()> body) {
                 spawn(name, std::move(body));
               }),
      present_(std::make_shared<const FeedOptions>(options_)) {
  make_parts();
}

void FeedRun::make_parts() {
  int frame_encodes = 0;
  std::vector<EncodeRoute*> routes;
  for (std::size_t i = 0; i < options_.encodes.size(); ++i) {
    const bool copies = options_.encodes[i].copy_video;
    encodes_.push_back(make_encode(present_, i, copies ? 0 : frame_encodes++));
    routes.push_back(encodes_.back()->route.get());
  }
  outputs_.change(options_, origins({encodes_.begin(), encodes_.end()}));
  packets_ = std::make_unique<PacketDispatch>(routes, cancel_.get_token(), cancel_reason_);
  if (frame_encodes > 0) {
    ring_ = std::make_unique<FrameRing>(options_.ring, frame_encodes, *stats_);
    stats_->set_device(device_->name());
    stage_ = device_->make_stage(*stats_, options_.slices);
    frames_ = std::make_unique<FrameDispatch>(FrameDispatch::Parts{.options = options_,
                                                                   .stats = stats_,
                                                                   .routes = routes,
                                                                   .ring = *ring_,
                                                                   .stage = *stage_,
                                                                   .stage_calls = stage_calls_,
                                                                   .deadlines = deadlines_,
                                                                   .line_clock = line_clock_,
                                                                   .cancel_reason = cancel_reason_},
                                              cancel_.get_token());
  }
  source_loop_ = std::make_unique<SourceLoop>(SourceLoop::Parts{.options = options_,
                                                                .stats = *stats_,
                                                                .line_clock = line_clock_,
                                                                .source_calls = source_calls_,
                                                                .packets = *packets_,
                                                                .frames = frames_.get(),
                                                                .stage = stage_.get(),
                                                                .changes = changes_,
                                                                .tap = tap_.get()});
}

FeedRun::EncodeRef FeedRun::make_encode(const std::shared_ptr<const FeedOptions>& options,
                                        std::size_t index, int consumer) {
  auto part = std::make_shared<EncodePart>();
  part->options = {options, &options->encodes[index]};
  part->stats = stats_->ledger().encodes[index].stats;
  const EncodeOptions& encode = *part->options;
  std::unique_ptr<AudioEncode> audio;
  if (encode.transcodes_audio()) {
    audio = std::make_unique<AudioEncode>(encode, options_.once, part->stats->audio, *stats_,
                                          part->audio_calls, deadlines_.encode_call);
  }
  auto fanout =
      std::make_shared<PacketFanout>(std::vector<OutputInlet*>(), tap_, encode.copy_video);
  if (!encode.copy_video) {
    part->encode = std::make_unique<Encode>(encode, consumer, *part->stats, *stats_, line_clock_,
                                            *fanout, deadlines_.encode_call, tap_.get());
  }
  const bool rendition = std::ranges::any_of(options->outputs, [&](const OutputOptions& output) {
    return output.from == encode.name && !output.master.empty();
  });
  EarlyAudio early_audio(*fanout);
  part->route = std::make_unique<EncodeRoute>(EncodeRoute{.options = part->options,
                                                          .fanout = std::move(fanout),
                                                          .rendition = rendition,
                                                          .early_audio = std::move(early_audio),
                                                          .audio = std::move(audio)});
  if (encode.copy_video) return part;
  EncodeRoute& route = *part->route;
  route.consumer = consumer;
  route.line = stats_->line(encode.name);
  route.opening = &part->encode->opening();
  route.pool = std::make_unique<FramePool>();
  route.outage = std::make_unique<EncodeOutage>(options_.name, *part->stats);
  return part;
}

/// All but those that the supervisor's thread asks. Runs on the run's last thread, which can be
/// abandoned: letting go of memory waits for the work of all feeds on the GPU, and a GPU that hangs
/// holds it up.
void FeedRun::free_parts() {
  const CallScope freeing(stage_calls_, deadlines_.stage_call);
  source_loop_.reset();
  frames_.reset();
  packets_.reset();
  stage_.reset();
  for (const EncodeRef& part : encodes_) part->route.reset();
}

void FeedRun::start() {
  // The threads wait for the mutex until all of them exist: otherwise one that ends early would
  // take itself for the last.
  const std::lock_guard lock(mutex_);
  outputs_.start(options_.recover);
  for (const EncodeRef& part : encodes_) start_encode(part);
  spawn("source", [this] { source_thread(); });
}

/// Requires mutex_.
void FeedRun::start_encode(const EncodeRef& part) {
  if (part->encode == nullptr) return;
  spawn("enc-" + part->options->name, [this, part] { encode_thread(*part); });
}

/// Requires mutex_.
void FeedRun::spawn(const std::string& name, std::function<void()> body) {
  auto thread = std::make_shared<Thread>();
  // Made now: when memory is short there is none for a text.
  std::string no_memory = shortage_text("its thread " + name + " got no memory");
  auto main = [self = shared_from_this(), thread, name, no_memory = std::move(no_memory),
               body = std::move(body)]() mutable {
    // The kernel allows 15 characters: enough to tell the threads of one process apart in top.
    pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
    { const std::lock_guard started(self->mutex_); }
    try {
      body();
    } catch (const FeedError& error) {
      self->fail(error.code(), error.what());
    } catch (const IoError& error) {
      self->fail(FeedFault::kSource, error.what());
    } catch (const std::bad_alloc&) {
      self->fail(FeedFault::kMemory, std::move(no_memory));
    } catch (const std::exception& error) {
      self->fail(FeedFault::kInternal, "its thread " + name + ": " + error.what());
    }
    if (--self->bodies_ == 0) {
      // Before the parts go, since every frame is accounted for by now: if a GPU then holds up this
      // thread, the outcome stays what it is.
      self->set_ended_if_unset();
      self->free_parts();
    }
    std::function<void()> done;
    {
      const std::lock_guard lock(self->mutex_);
      thread->finished = true;
      thread->abandonable.end();
      if (--self->running_ == 0) {
        done = self->on_done_;
        if (self->abandoned_) --self->stats_->abandoned_runs;
      }
    }
    self->finished_.notify_all();
    if (done) done();
  };
  threads_.push_back(thread);  // before it begins, because this may fail
  try {
    thread->thread = std::thread(std::move(main));
  } catch (const std::bad_alloc&) {
    threads_.pop_back();
    throw;
  } catch (const std::system_error& error) {
    threads_.pop_back();
    throw FeedError(FeedFault::kMemory, "its thread " + name + " does not start: " +
                                            shortage_text(error.code().message()));
  }
  ++running_;
  ++bodies_;
}

void FeedRun::source_thread() {
  try {
    source_loop_->run();
    const std::lock_guard lock(mutex_);
    source_ended_ = !stopped_;
  } catch (const IoError& error) {
    // No cancel: what was read before the source was lost is still delivered.
    set_failed_if_unset(FeedFault::kSource, error.what());
  }
  source_loop_->close();
  if (ring_ != nullptr) ring_->close();
  packets_->finish();
}

void FeedRun::encode_thread(EncodePart& part) {
  // When the encode has left, its route goes as soon as this has finished.
  const std::shared_ptr<PacketFanout> fanout = part.route->fanout;
  part.encode->run(*ring_, *stage_, cancel_.get_token(), cancel_reason_);
  fanout->finish();
}

void FeedRun::set_ended_if_unset() {
  const std::lock_guard lock(mutex_);
  if (outcome_) return;
  outcome_ =
      Feed::Outcome{source_ended_ ? Feed::Outcome::Kind::kEnded : Feed::Outcome::Kind::kStopped,
                    FeedFault::kInternal,
                    {}};
}

void FeedRun::set_failed_if_unset(FeedFault fault, std::string reason) {
  const std::lock_guard lock(mutex_);
  if (!outcome_) outcome_ = Feed::Outcome{Feed::Outcome::Kind::kFailed, fault, std::move(reason)};
}

void FeedRun::fail(FeedFault fault, std::string reason) {
  set_failed_if_unset(fault, std::move(reason));
  cancel(DropReason::kFeedFailed);
}

/// Until release_parts() no thread that ends frees the parts. False if that has begun.
bool FeedRun::hold_parts() {
  std::size_t bodies = bodies_;
  while (bodies > 0) {
    if (bodies_.compare_exchange_weak(bodies, bodies + 1)) return true;
  }
  return false;
}

/// Requires mutex_.
void FeedRun::release_parts() {
  std::size_t bodies = bodies_;
  while (bodies > 1) {
    if (bodies_.compare_exchange_weak(bodies, bodies - 1)) return;
  }
  // All other threads have ended meanwhile. Freeing the parts may take any time, so that it needs a
  // thread which can be abandoned.
  try {
    spawn("end", [] {});
  } catch (const FeedError& error) {
    outcome_ = Feed::Outcome{Feed::Outcome::Kind::kFailed, error.code(), error.what()};
  } catch (const std::bad_alloc&) {
    outcome_ = Feed::Outcome{Feed::Outcome::Kind::kFailed, FeedFault::kMemory, {}};
  }
  --bodies_;
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
      cancelled_at_ = Clock::now();
      cancel_reason_ = reason;
    }
  }
  read_stop_.request_stop();
  cancel_.request_stop();
  if (ring_ != nullptr) ring_->close();
}

void FeedRun::watch_calls(Clock::time_point now) {
  FeedFault fault = FeedFault::kInternal;
  std::string reason;
  {
    const std::lock_guard lock(mutex_);
    if (running_ == 0 || cancelled_at_) return;
    if (is_stuck(source_calls_.overdue(), source_overdue_since_, now, deadlines_)) {
      reason = "reading " + redact(options_.input.url) +
               " is stuck in a call that ignores input.timeout; its thread is abandoned";
    }
    for (const EncodeRef& part : encodes_) {
      const Encode* const encode = part->encode.get();
      const bool opening = encode != nullptr && part->encode->opening().overdue();
      const bool overdue = opening || (encode != nullptr && encode->overdue());
      if (is_stuck(overdue, part->overdue_since, now, deadlines_)) {
        const bool on_gpu = encode->on_gpu() && device_->has_copy_engines();
        fault = !opening && on_gpu ? FeedFault::kDevice : FeedFault::kEncoder;
        const std::string call =
            encode->releases() ? "giving back a frame, which " + device_->name() + " may hold,"
                               : "a call of " + part->stats->codec();
        reason = endless_call(*part->options, opening ? "the call that opens its encoder" : call);
      }
      if (is_stuck(part->audio_calls.overdue(), part->audio_overdue_since, now, deadlines_)) {
        const std::string codec = part->stats->audio.codec();
        fault = FeedFault::kEncoder;
        reason = endless_call(*part->options, "a call that transcodes its sound" +
                                                  (codec.empty() ? "" : " to " + codec));
      }
    }
    if (std::string stuck = outputs_.find_stuck(now); !stuck.empty()) {
      fault = FeedFault::kInternal;
      reason = std::move(stuck);
    }
    // A GPU that is lost never ends a call that it has not ended.
    const bool lost = device_->lost() && stage_calls_.under_way();
    if (is_stuck(lost || stage_calls_.overdue(), stage_overdue_since_, now, deadlines_)) {
      const bool gpu = device_->has_copy_engines();
      fault = gpu ? FeedFault::kDevice : FeedFault::kInternal;
      reason = "a call on " + device_->name() + " does not come to an end; its thread is abandoned";
      if (gpu) reason += ": see what the kernel's log says of the driver";
    }
  }
  if (reason.empty()) return;
  if (fault == FeedFault::kDevice) device_->lose("feed " + options_.name + ": " + reason);
  fail(fault, reason);
}

std::optional<Feed::Outcome> FeedRun::outcome(Clock::time_point now) {
  watch_calls(now);
  forget_left();
  const std::lock_guard lock(mutex_);
  if (running_ > 0 && !stuck_after_cancel(now)) return std::nullopt;
  if (outcome_) return outcome_;
  return Feed::Outcome{Feed::Outcome::Kind::kFailed, FeedFault::kInternal,
                       "a thread is stuck in a call that does not end"};
}

bool FeedRun::join_until(Clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  return finished_.wait_until(lock, deadline, [this] { return running_ == 0; });
}

bool FeedRun::stuck_after_cancel(Clock::time_point now) const {
  return cancelled_at_ && now - *cancelled_at_ >= deadlines_.after_cancel;
}

bool FeedRun::join_cancelled() {
  Clock::time_point deadline;
  {
    const std::lock_guard lock(mutex_);
    deadline = cancelled_at_.value_or(Clock::now()) + deadlines_.after_cancel;
  }
  return join_until(deadline);
}

int FeedRun::abandon() {
  const std::lock_guard lock(mutex_);
  on_done_ = nullptr;  // it may refer to what is gone when an abandoned thread's call returns
  abandoned_ = running_ > 0;
  if (abandoned_) {
    outputs_.abandon();
    ++stats_->abandoned_runs;
    stats_->abandon_run(cancel_reason_);
  }
  int abandoned = 0;
  for (const std::shared_ptr<Thread>& thread : threads_) {
    if (thread->finished) {
      thread->thread.join();  // it has at most on_done_ left to call
    } else {
      thread->thread.detach();
      thread->abandonable.abandon();
      ++abandoned;
    }
  }
  return abandoned;
}

}  // namespace framelane
