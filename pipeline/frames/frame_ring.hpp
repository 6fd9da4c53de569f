#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include "pipeline/frames/frame_job.hpp"

namespace framelane {

/// The jobs in flight of one feed: bounded and ordered. One producer takes a place, fills its job
/// and publishes it; every consumer sees every published job, in order, and the place is free again
/// when the last consumer has let go. Places and leases return by themselves.
///
/// One producer thread; each consumer index belongs to one thread; close() from any thread.
class FrameRing {
 public:
  /// `outputs`: the jobs' number of outputs, which is also the number of consumers. A job that
  /// leaves the ring is taken off `stats`'s ready ones.
  FrameRing(int capacity, int outputs, FeedStats& stats);

  /// A place in the ring that has not been published. Unpublished, it goes back.
  class Place {
   public:
    Place(Place&& other) noexcept : ring_(std::exchange(other.ring_, nullptr)), job_(other.job_) {}
    Place& operator=(Place&&) = delete;
    ~Place();
    FrameJob& operator*() const { return *job_; }
    FrameJob* operator->() const { return job_; }
    /// Hands the job to the consumers; false, with the place returned and the job still untouched,
    /// when the ring was closed. Ends the place either way.
    bool publish();

   private:
    friend class FrameRing;
    Place(FrameRing* ring, FrameJob* job) : ring_(ring), job_(job) {}
    FrameRing* ring_;
    FrameJob* job_;
  };

  /// Waits for a place; nothing when stopped or closed.
  std::optional<Place> acquire(const std::stop_token& stop);
  /// Never blocks; nothing when the ring is full or closed.
  std::optional<Place> try_acquire();

  /// One consumer's hold on a job.
  class Lease {
   public:
    Lease(Lease&& other) noexcept : ring_(std::exchange(other.ring_, nullptr)), job_(other.job_) {}
    Lease& operator=(Lease&&) = delete;
    ~Lease();
    FrameJob& operator*() const { return *job_; }
    FrameJob* operator->() const { return job_; }

   private:
    friend class FrameRing;
    Lease(FrameRing* ring, FrameJob* job) : ring_(ring), job_(job) {}
    FrameRing* ring_;
    FrameJob* job_;
  };

  /// The consumer's next job; waits for one to be published; nothing once the ring is closed and
  /// all published jobs have been seen. A consumer holds at most one lease at a time.
  std::optional<Lease> next(int consumer);

  /// Nothing more is published; what has been stays readable.
  void close();
  bool closed();

 private:
  struct Slot {
    FrameJob job;
    int holders = 0;  // consumers that have not let go; 0: free or being filled
  };

  Slot& slot(std::uint64_t sequence) { return slots_[sequence % capacity_]; }
  void release(FrameJob& job);
  std::optional<Place> take_place();

  const std::uint64_t capacity_;
  const int consumers_;
  FeedStats& stats_;
  std::mutex mutex_;
  std::condition_variable_any place_free_;
  std::condition_variable published_;
  std::unique_ptr<Slot[]> slots_;
  std::uint64_t head_ = 0;  // sequence of the next job to be published
  std::vector<std::uint64_t> cursors_;
  bool closed_ = false;
};

}  // namespace framelane
