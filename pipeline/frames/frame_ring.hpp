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
/// Consumers may come and go. A job's outputs are by consumer; the producer sees to it that there
/// are as many as it takes.
///
/// One producer thread; one thread for each consumer index; any thread may call add_consumer(),
/// close() and closed().
class FrameRing {
 public:
  /// `consumers`: how many there are from the first job on, with the indices from 0 on, and how
  /// many outputs each job has at first. A job that leaves the ring is subtracted from `stats`'
  /// count of ready jobs.
  FrameRing(int capacity, int consumers, FeedStats& stats);

  /// The index of a new consumer, which waits for its first job until it is admitted.
  int add_consumer();
  /// The consumer gets the jobs that are published from now on. The producer's thread.
  void admit(int consumer);
  /// The consumer gets no job that is published from now on. Those that were published before stay
  /// its own: they keep their places until it has released them, and it ends their tickets as
  /// before; nothing is dropped or counted here. After the last of them next() returns nothing, and
  /// must not be called again, because add_consumer() may give the index to another consumer. Does
  /// not wait for the consumer; wakes it if it waits in next() or wait_until(). `consumer` must be
  /// admitted, and wait_released() must not be called for it any more. Whenever a job is published,
  /// at least one consumer must be admitted. The producer's thread.
  void dismiss(int consumer);

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

  /// Waits for the consumer's next job. Nothing once the ring is closed, or the consumer dismissed,
  /// and it has had all jobs that were published for it. A consumer holds at most one lease at a
  /// time.
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

  struct Consumer {
    enum class State { kFree, kAdded, kAdmitted, kDismissed } state = State::kFree;
    std::uint64_t cursor = 0;    // sequence of its next job
    std::uint64_t end = 0;       // dismissed: sequence of the first job that is not for it
    std::uint64_t released = 0;  // sequence behind the last job that it has released
  };

  Slot& slot(std::uint64_t sequence) { return slots_[sequence % capacity_]; }
  void release(FrameJob& job, int consumer);
  std::optional<Place> take_place();
  Consumer& at(int consumer) { return consumers_[static_cast<std::size_t>(consumer)]; }
  /// The sequence of the first job that the consumer does not get, as things stand.
  std::uint64_t end_of(const Consumer& consumer) const;
  bool has_next(const Consumer& consumer) const;

  const std::uint64_t capacity_;
  const std::shared_ptr<RingJobs> ring_jobs_;
  std::mutex mutex_;
  std::condition_variable_any place_free_;
  std::condition_variable published_;
  std::unique_ptr<Slot[]> slots_;
  std::uint64_t head_ = 0;  // sequence of the next job to be published
  std::vector<Consumer> consumers_;
  std::optional<int> awaited_;  // the consumer of wait_released
  bool closed_ = false;
};

}  // namespace framelane
