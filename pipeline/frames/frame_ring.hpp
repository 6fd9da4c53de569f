#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include "pipeline/frames/frame_job.hpp"
#include "pipeline/measure/feed_stats.hpp"

namespace framelane {

/// The jobs of one feed that are in flight, bounded and in order. The producer takes a place, fills
/// its job and publishes it. Every consumer leases every published job, in order. The place is free
/// again when the last consumer has released its lease. Places and leases release themselves.
///
/// One producer thread; one thread for each consumer index; any thread may call close() and
/// closed().
class FrameRing {
 public:
  /// `outputs`: the number of each job's outputs and of the consumers. A job that leaves the ring
  /// is subtracted from `stats`' count of ready jobs.
  FrameRing(int capacity, int outputs, FeedStats& stats);

  /// The producer's hold on a free place and its job. If it is not published, its destructor clears
  /// the job and the place stays free.
  class Place {
   public:
    Place(Place&& other) noexcept : ring_(std::exchange(other.ring_, nullptr)), job_(other.job_) {}
    Place& operator=(Place&&) = delete;
    ~Place();
    FrameJob& operator*() const { return *job_; }
    FrameJob* operator->() const { return job_; }
    /// Hands the job to the consumers; the place is then no longer the producer's. False if the
    /// ring is closed: no consumer has seen the job.
    bool publish();

   private:
    friend class FrameRing;
    Place(FrameRing* ring, FrameJob* job) : ring_(ring), job_(job) {}
    FrameRing* ring_;
    FrameJob* job_;
  };

  /// Waits for a place. Nothing if stopped or closed.
  std::optional<Place> acquire(const std::stop_token& stop);
  /// The same, but waits no longer than until `deadline`.
  std::optional<Place> acquire_until(const std::stop_token& stop,
                                     std::chrono::steady_clock::time_point deadline);
  /// Does not wait. Nothing if the ring is full or closed.
  std::optional<Place> try_acquire();
  /// Waits until a consumer has released all jobs that were published. Returns early if stopped or
  /// closed. The producer's thread.
  void wait_released(int consumer, const std::stop_token& stop);

  /// One consumer's hold on a job, released by the destructor.
  class Lease {
   public:
    Lease(Lease&& other) noexcept
        : ring_(std::exchange(other.ring_, nullptr)),
          job_(other.job_),
          consumer_(other.consumer_) {}
    Lease& operator=(Lease&&) = delete;
    ~Lease();
    FrameJob& operator*() const { return *job_; }
    FrameJob* operator->() const { return job_; }

   private:
    friend class FrameRing;
    Lease(FrameRing* ring, FrameJob* job, int consumer)
        : ring_(ring), job_(job), consumer_(consumer) {}
    FrameRing* ring_;
    FrameJob* job_;
    int consumer_;
  };

  /// Waits for the consumer's next job. Nothing once the ring is closed and the consumer has had
  /// all jobs that were published. A consumer holds at most one lease at a time.
  std::optional<Lease> next(int consumer);
  /// Waits until next() would not wait, but no longer than until `deadline`. False if it would.
  bool wait_until(int consumer, std::chrono::steady_clock::time_point deadline);

  /// No more jobs are published. Those that were can still be leased.
  void close();
  bool closed();

 private:
  struct Slot {
    FrameJob job;
    int holders = 0;  // consumers that have not released the job; 0: free, or being filled
  };

  Slot& slot(std::uint64_t sequence) { return slots_[sequence % capacity_]; }
  void release(FrameJob& job, int consumer);
  std::optional<Place> take_place();
  bool has_next(int consumer) const {
    return closed_ || cursors_[static_cast<std::size_t>(consumer)] < head_;
  }

  const std::uint64_t capacity_;
  const int consumers_;
  const std::shared_ptr<RingJobs> ring_jobs_;
  std::mutex mutex_;
  std::condition_variable_any place_free_;
  std::condition_variable published_;
  std::unique_ptr<Slot[]> slots_;
  std::uint64_t head_ = 0;               // sequence of the next job to be published
  std::vector<std::uint64_t> cursors_;   // by consumer: sequence of its next job
  std::vector<std::uint64_t> released_;  // by consumer: how many jobs it has released
  std::optional<int> awaited_;           // the consumer of wait_released
  bool closed_ = false;
};

}  // namespace framelane
