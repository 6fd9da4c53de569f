#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pipeline/base/labels.hpp"

namespace framelane {

/// What a record is about. kPacket and kDrop have no duration. kPacket: a packet of video has its
/// place on the feed's line of time, or a raw frame has come. kRead: the source thread waits for
/// data. kWait: it waits for a place in the ring. kDrop: a frame is dropped (detail: its
/// DropReason).
enum class TraceKind : std::uint8_t {
  kPacket,
  kRead,
  kDecode,
  kWait,
  kH2d,
  kKernel,
  kD2h,
  kEncode,
  kMux,
  kDrop
};
inline constexpr std::array<std::string_view, 10> kTraceKindNames{
    "packet", "read", "decode", "wait", "h2d", "kernel", "d2h", "encode", "mux", "drop"};

constexpr TraceKind trace_kind(Engine engine) {
  switch (engine) {
    case Engine::kH2d:
      return TraceKind::kH2d;
    case Engine::kKernel:
      return TraceKind::kKernel;
    case Engine::kD2h:
      return TraceKind::kD2h;
  }
  return TraceKind::kKernel;
}

/// What a feed's thread, lane or drawer of losses is called in a trace. Stays the same for the
/// process's life, also over restarts and reloads.
struct TraceTrackName {
  std::string feed;
  std::string name;  ///< "source", "encode live", "output hls", "lane 0"
};

/// The last things that happened to every frame, in memory of a fixed size: when it is full the
/// oldest record goes for each new one. Writing takes no lock and never waits.
class FlightRecorder {
 public:
  using Clock = std::chrono::steady_clock;
  /// The frame of a record that is about none.
  static constexpr std::int64_t kNoFrame = std::numeric_limits<std::int64_t>::min();

  struct Record {
    Clock::time_point start;
    std::chrono::nanoseconds duration{0};
    /// Names a frame of the feed, from its packet to the packets that are made of it: its time on
    /// the feed's line, in microseconds.
    std::int64_t frame = kNoFrame;
    std::uint32_t track = 0;
    TraceKind kind = TraceKind::kRead;
    std::uint8_t detail = 0;
  };

  /// `bytes`: the memory for records, all of it taken here. At least one record is kept. Throws
  /// std::bad_alloc.
  explicit FlightRecorder(std::size_t bytes);

  /// The number of the track of this name. Takes a lock.
  std::uint32_t track(const std::string& feed, const std::string& name);
  /// By their numbers.
  std::vector<TraceTrackName> tracks() const;

  /// Any thread. A record is lost if the one whose place it takes is still being written: that
  /// thread has slept while all of the memory was used once.
  void record(const Record& record) noexcept;

  /// Calls `visit` with the records that ended at `since` or later, in the order in which they
  /// came. Left out are those that are overwritten before their turn, those that come meanwhile,
  /// and those that lie before kManyOld older ones in a row (what a GPU did comes a little late).
  /// Takes as long as there are records since then. Any thread.
  void visit(Clock::time_point since, const std::function<void(const Record&)>& visit) const;
  /// When the oldest record that is left ended; nothing before the first.
  std::optional<Clock::time_point> oldest() const;
  /// How many records there is room for.
  std::size_t capacity() const { return capacity_; }
  /// Of the memory for records.
  std::size_t bytes() const { return capacity_ * sizeof(Slot); }

 private:
  /// Atomic, so that a reader may look at what a writer changes. `stamp` tells whether it did: it
  /// is 2 n + 2 if record n is there, 2 n + 1 while that is being written, and 0 at the begin.
  struct Slot {
    std::atomic<std::uint64_t> stamp{0};
    std::atomic<std::int64_t> start{0};     // ns of the clock
    std::atomic<std::int64_t> duration{0};  // ns
    std::atomic<std::int64_t> frame{0};
    std::atomic<std::uint64_t> rest{0};  // track, kind and detail
  };

  static constexpr int kManyOld = 4096;

  std::uint64_t first() const;
  std::optional<Record> read(std::uint64_t number) const;

  const std::size_t capacity_;
  const std::unique_ptr<Slot[]> slots_;  // record n is at n % capacity_
  std::atomic<std::uint64_t> next_{0};   // the number of the next record
  mutable std::mutex mutex_;
  std::vector<TraceTrackName> tracks_;  // guarded by mutex_
};

/// Where one thread or lane of a feed writes what it does. Does nothing without a recorder. Cheap
/// to copy. Any thread.
class TraceTrack {
 public:
  TraceTrack() = default;
  TraceTrack(std::shared_ptr<FlightRecorder> recorder, const std::string& feed,
             const std::string& name)
      : recorder_(std::move(recorder)), track_(recorder_ ? recorder_->track(feed, name) : 0) {}

  void slice(TraceKind kind, FlightRecorder::Clock::time_point start,
             FlightRecorder::Clock::time_point end, std::int64_t frame = FlightRecorder::kNoFrame,
             std::uint8_t detail = 0) const noexcept {
    if (recorder_) recorder_->record({start, end - start, frame, track_, kind, detail});
  }
  /// Now, without a duration.
  void mark(TraceKind kind, std::int64_t frame, std::uint8_t detail = 0) const noexcept {
    if (recorder_ == nullptr) return;
    const auto now = FlightRecorder::Clock::now();
    slice(kind, now, now, frame, detail);
  }

 private:
  std::shared_ptr<FlightRecorder> recorder_;
  std::uint32_t track_ = 0;
};

}  // namespace framelane
