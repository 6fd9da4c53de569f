#include "pipeline/frames/frame_ring.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>

namespace framelane {

FrameRing::FrameRing(int capacity, int consumers, FeedStats& stats)
    : capacity_(static_cast<std::uint64_t>(capacity)),
      ring_jobs_(stats.ring_jobs()),
      slots_(std::make_unique<Slot[]>(static_cast<std::size_t>(capacity))),
      consumers_(static_cast<std::size_t>(consumers), {.state = Consumer::State::kAdmitted}) {
  assert(capacity > 0 && consumers > 0);
  for (std::uint64_t i = 0; i < capacity_; ++i) {
    slots_[i].job.outputs.resize(consumers_.size());
  }
}

int FrameRing::add_consumer() {
  const std::lock_guard lock(mutex_);
  auto consumer = std::ranges::find(consumers_, Consumer::State::kFree, &Consumer::state);
  if (consumer == consumers_.end()) consumer = consumers_.emplace(consumers_.end());
  consumer->state = Consumer::State::kAdded;
  return static_cast<int>(consumer - consumers_.begin());
}

void FrameRing::admit(int consumer) {
  const std::lock_guard lock(mutex_);
  at(consumer) = {.state = Consumer::State::kAdmitted, .cursor = head_, .released = head_};
}

void FrameRing::dismiss(int consumer) {
  {
    const std::lock_guard lock(mutex_);
    assert(at(consumer).state == Consumer::State::kAdmitted);
    at(consumer).state = Consumer::State::kDismissed;
    at(consumer).end = head_;
  }
  published_.notify_all();
}

std::uint64_t FrameRing::end_of(const Consumer& consumer) const {
  switch (consumer.state) {
    case Consumer::State::kAdmitted:
      return head_;
    case Consumer::State::kDismissed:
      return consumer.end;
    default:
      return consumer.cursor;
  }
}

bool FrameRing::has_next(const Consumer& consumer) const {
  return closed_ || consumer.state == Consumer::State::kDismissed ||
         consumer.cursor < end_of(consumer);
}

std::optional<FrameRing::Place> FrameRing::take_place() {
  if (closed_ || slot(head_).holders > 0) return std::nullopt;
  FrameJob& job = slot(head_).job;
  job.sequence = head_;
  job.converted.store(false, std::memory_order_relaxed);
  job.on_fallback.store(false, std::memory_order_relaxed);
  job.device_lost.store(false, std::memory_order_relaxed);
  return Place(this, &job);
}

std::optional<FrameRing::Place> FrameRing::acquire(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  place_free_.wait(lock, stop, [this] { return closed_ || slot(head_).holders == 0; });
  if (stop.stop_requested()) return std::nullopt;
  return take_place();
}

std::optional<FrameRing::Place> FrameRing::acquire_until(
    const std::stop_token& stop, std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  place_free_.wait_until(lock, stop, deadline,
                         [this] { return closed_ || slot(head_).holders == 0; });
  if (stop.stop_requested()) return std::nullopt;
  return take_place();
}

std::optional<FrameRing::Place> FrameRing::try_acquire() {
  const std::lock_guard lock(mutex_);
  return take_place();
}

void FrameRing::wait_released(int consumer, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  awaited_ = consumer;
  place_free_.wait(lock, stop, [&] { return closed_ || at(consumer).released == head_; });
  awaited_.reset();
}

FrameRing::Place::~Place() {
  // The slot is still the producer's, so there is nothing to give back. The job is cleared, so that
  // its buffers go now and not when the place is filled next.
  if (ring_ == nullptr) return;
  job_->input = {};
  job_->plan.reset();
  for (JobOutput& output : job_->outputs) {
    output.target = {};
    output.side_buffer = {};
    output.overlays.reset();
    output.encode_plan.reset();
  }
}

bool FrameRing::Place::publish() {
  {
    const std::lock_guard lock(ring_->mutex_);
    if (ring_->closed_) return false;
    const auto holders =
        std::ranges::count(ring_->consumers_, Consumer::State::kAdmitted, &Consumer::state);
    assert(holders > 0);
    ring_->slot(ring_->head_).holders = static_cast<int>(holders);
    ++ring_->head_;
  }
  std::exchange(ring_, nullptr)->published_.notify_all();
  return true;
}

std::optional<FrameRing::Lease> FrameRing::next(int consumer) {
  std::unique_lock lock(mutex_);
  published_.wait(lock, [&] { return has_next(at(consumer)); });
  Consumer& self = at(consumer);
  if (self.cursor < end_of(self)) return Lease(this, &slot(self.cursor++).job, consumer);
  if (self.state == Consumer::State::kDismissed) self.state = Consumer::State::kFree;
  return std::nullopt;
}

bool FrameRing::wait_until(int consumer, std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  return published_.wait_until(lock, deadline, [&] { return has_next(at(consumer)); });
}

FrameRing::Lease::~Lease() {
  if (ring_ != nullptr) ring_->release(*job_, consumer_);
}

void FrameRing::release(FrameJob& job, int consumer) {
  {
    const std::lock_guard lock(mutex_);
    at(consumer).released = job.sequence + 1;
    if (awaited_ == consumer) place_free_.notify_one();
    Slot& released = slot(job.sequence);
    assert(released.holders > 0);
    if (released.holders > 1) {
      --released.holders;
      return;
    }
  }
  // The last holder clears the job without the lock, because giving buffers back may take FFmpeg's
  // locks. `holders` stays 1 until that is done, so that the slot is not filled meanwhile.
  job.input = {};
  job.plan.reset();  // or a plan of an earlier format would stay until the slot is used again
  for (JobOutput& output : job.outputs) {
    assert(!output.ticket && "a frame left the ring without an end");
    output.target = {};
    output.side_buffer = {};
    output.overlays.reset();
  }
  --(*ring_jobs_)[index_of(RingState::kReady)];
  {
    const std::lock_guard lock(mutex_);
    slot(job.sequence).holders = 0;
  }
  place_free_.notify_one();
}

bool FrameRing::closed() {
  const std::lock_guard lock(mutex_);
  return closed_;
}

void FrameRing::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  place_free_.notify_all();
  published_.notify_all();
}

}  // namespace framelane
