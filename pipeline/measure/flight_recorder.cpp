#include "pipeline/measure/flight_recorder.hpp"

#include <algorithm>

namespace framelane {
namespace {

constexpr std::uint64_t packed(const FlightRecorder::Record& record) {
  return (std::uint64_t{record.track} << 32) | (static_cast<std::uint64_t>(record.kind) << 8) |
         record.detail;
}

}  // namespace

// make_unique clears the slots, so that every page of them is there from now on.
FlightRecorder::FlightRecorder(std::size_t bytes)
    : capacity_(std::max<std::size_t>(bytes / sizeof(Slot), 1)),
      slots_(std::make_unique<Slot[]>(capacity_)) {}

std::uint32_t FlightRecorder::track(const std::string& feed, const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(tracks_, [&](const TraceTrackName& track) {
    return track.feed == feed && track.name == name;
  });
  if (found != tracks_.end()) return static_cast<std::uint32_t>(found - tracks_.begin());
  tracks_.push_back({feed, name});
  return static_cast<std::uint32_t>(tracks_.size() - 1);
}

std::vector<TraceTrackName> FlightRecorder::tracks() const {
  const std::lock_guard lock(mutex_);
  return tracks_;
}

// Every access to what a slot holds is a release or an acquire: a reader that has seen anything of
// a later record then also sees that record's stamp, which is written before. On x86-64 and on
// 64-bit ARM these are plain stores and loads, or nearly so.
void FlightRecorder::record(const Record& record) noexcept {
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
  const std::uint64_t number = next_.fetch_add(1, std::memory_order_relaxed);
  const std::uint64_t being_written = 2 * number + 1;
  Slot& slot = slots_[number % capacity_];
  std::uint64_t before = slot.stamp.load(std::memory_order_relaxed);
  const bool free = before % 2 == 0 && before < being_written;
  if (!free || !slot.stamp.compare_exchange_strong(before, being_written)) return;
  slot.start.store(record.start.time_since_epoch().count(), std::memory_order_release);
  slot.duration.store(record.duration.count(), std::memory_order_release);
  slot.frame.store(record.frame, std::memory_order_release);
  slot.rest.store(packed(record), std::memory_order_release);
  slot.stamp.store(being_written + 1, std::memory_order_release);
}

std::optional<FlightRecorder::Record> FlightRecorder::read(std::uint64_t number) const {
  const Slot& slot = slots_[number % capacity_];
  const std::uint64_t stamp = 2 * number + 2;
  if (slot.stamp.load(std::memory_order_acquire) != stamp) return std::nullopt;
  Record record;
  record.start = Clock::time_point(Clock::duration(slot.start.load(std::memory_order_acquire)));
  record.duration = std::chrono::nanoseconds(slot.duration.load(std::memory_order_acquire));
  record.frame = slot.frame.load(std::memory_order_acquire);
  const std::uint64_t rest = slot.rest.load(std::memory_order_acquire);
  if (slot.stamp.load(std::memory_order_relaxed) != stamp) return std::nullopt;
  record.track = static_cast<std::uint32_t>(rest >> 32);
  record.kind = static_cast<TraceKind>((rest >> 8) & 0xff);
  record.detail = static_cast<std::uint8_t>(rest & 0xff);
  return record;
}

/// The number of the oldest record that there may be.
std::uint64_t FlightRecorder::first() const {
  const std::uint64_t next = next_.load(std::memory_order_acquire);
  return next - std::min<std::uint64_t>(next, capacity_);
}

void FlightRecorder::visit(Clock::time_point since,
                           const std::function<void(const Record&)>& visit) const {
  const std::uint64_t end = next_.load(std::memory_order_acquire);
  const std::uint64_t oldest = first();
  std::uint64_t begin = end;
  for (int old = 0; begin > oldest && old < kManyOld; --begin) {
    const std::optional<Record> record = read(begin - 1);
    old = record && record->start + record->duration < since ? old + 1 : 0;
  }
  for (std::uint64_t number = begin; number < end; ++number) {
    const std::optional<Record> record = read(number);
    if (record && record->start + record->duration >= since) visit(*record);
  }
}

std::optional<FlightRecorder::Clock::time_point> FlightRecorder::oldest() const {
  const std::uint64_t end = next_.load(std::memory_order_acquire);
  for (std::uint64_t number = first(); number < end; ++number) {
    if (const std::optional<Record> record = read(number)) return record->start + record->duration;
  }
  return std::nullopt;
}

}  // namespace framelane
