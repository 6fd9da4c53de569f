#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "pipeline/base/labels.hpp"
#include "pipeline/measure/busy_meter.hpp"
#include "pipeline/measure/engine_meters.hpp"
#include "pipeline/measure/histogram.hpp"

namespace framelane {

template <typename Names>
using CounterArray = std::array<std::atomic<std::uint64_t>, std::tuple_size_v<Names>>;

/// One encode's line of the ledger: in = out + the sum of dropped + in_flight.
struct EncodeCounts {
  std::uint64_t in = 0;
  std::uint64_t out = 0;
  std::array<std::uint64_t, kDropReasonNames.size()> dropped{};
  std::int64_t in_flight = 0;
};

struct OutputStats {
  explicit OutputStats(std::string output_name) : name(std::move(output_name)) {}

  const std::string name;
  std::atomic<bool> up{false};
  std::atomic<bool> paused{false};  ///< waiting: disk full, or between reconnects
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<std::uint32_t> queue_packets{0};
  CounterArray<decltype(kPacketDropNames)> packets_dropped{};
  CounterArray<decltype(kIoFaultNames)> reconnects{};
  BusyMeter busy;  ///< the muxer thread, writing

  void drop(PacketDrop reason, std::uint64_t count = 1) {
    packets_dropped[index_of(reason)].fetch_add(count, std::memory_order_relaxed);
  }
  /// A run of the output begins; the number it gets is needed to say how it is. What a thread that
  /// was given up says about itself later is not heard any more.
  std::uint64_t begin_run();
  /// State and reason for the status API, `up` and `paused`; any thread.
  void set_state(std::uint64_t run, FeedState state, std::string reason);
  std::pair<FeedState, std::string> state() const;

 private:
  mutable std::mutex mutex_;
  std::uint64_t run_ = 0;
  FeedState state_ = FeedState::kConnecting;
  std::string reason_;
};

struct EncodeStats {
  explicit EncodeStats(std::string encode_name, bool copies)
      : name(std::move(encode_name)), copy(copies) {}

  const std::string name;
  const bool copy;    ///< packets pass untouched: no frames, no ledger
  Histogram latency;  ///< decoded frame in hand to packet queued
  BusyMeter busy;     ///< the encode thread, encoding
  void set_codec(std::string codec);
  std::string codec() const;

 private:
  mutable std::mutex mutex_;
  std::string codec_;
};

struct LaneStats {
  EngineMeters busy;
};

class FrameTicket;

/// Everything a feed counts. Outlives the feed's restarts: the counts belong to the feed's name.
/// The ledger and the state change under one small lock, so that a snapshot always balances;
/// the rest is atomic. All of it may be used from any thread.
class FeedStats {
 public:
  struct EncodeSpec {
    std::string name;
    bool copy = false;
  };
  FeedStats(std::string feed, const std::vector<EncodeSpec>& encodes,
            const std::vector<std::string>& outputs, int lanes);

  const std::string& feed() const { return feed_; }
  std::size_t encode_count() const { return encodes_.size(); }
  EncodeStats& encode(std::size_t index) { return encodes_[index]; }
  const EncodeStats& encode(std::size_t index) const { return encodes_[index]; }
  std::deque<OutputStats>& outputs() { return outputs_; }
  const std::deque<OutputStats>& outputs() const { return outputs_; }
  std::deque<LaneStats>& lanes() { return lanes_; }
  const std::deque<LaneStats>& lanes() const { return lanes_; }

  struct Status {
    FeedState state = FeedState::kConnecting;
    std::string reason;  ///< why it is not running; empty when it is
    std::chrono::system_clock::time_point since;
    std::string decoder;
    std::string decoder_reason;  ///< why it is not NVDEC, on a GPU that was to be asked; or empty
    std::string device;
  };
  struct Ledger {
    std::uint64_t frames_in = 0;
    std::vector<EncodeCounts> encodes;
  };
  Status status() const;
  Ledger ledger() const;

  void set_state(FeedState state, std::string reason);
  void set_decoder(std::string decoder);
  /// True when the reason is another one than before.
  bool set_decoder_reason(std::string reason);
  void set_device(std::string device);

  /// Marks that a frame or a copied packet has just arrived.
  void arrived();
  /// Time of the last arrival, nothing before the first; system clock for the metric, steady for
  /// deciding whether the feed is up.
  std::chrono::system_clock::time_point last_arrival() const;
  std::chrono::steady_clock::duration since_arrival() const;

  void count(DecodeFault fault) { bump(decode_faults, index_of(fault)); }
  void count(TimestampRepair repair) { bump(timestamp_repairs, index_of(repair)); }
  void count(HostCopy reason) { bump(host_copies, index_of(reason)); }
  void count_reconnect(IoFault reason) { bump(reconnects, index_of(reason)); }
  void count_restart(FeedFault reason) { bump(restarts, index_of(reason)); }
  void observe(StageStep step, std::chrono::nanoseconds time) {
    steps[index_of(step)].observe(time);
  }

  CounterArray<decltype(kDecodeFaultNames)> decode_faults{};
  CounterArray<decltype(kTimestampRepairNames)> timestamp_repairs{};
  CounterArray<decltype(kHostCopyNames)> host_copies{};
  CounterArray<decltype(kIoFaultNames)> reconnects{};
  CounterArray<decltype(kFeedFaultNames)> restarts{};
  std::array<Histogram, kStageStepNames.size()> steps;
  std::atomic<std::uint64_t> input_bytes{0};
  std::array<std::atomic<std::uint32_t>, kRingStateNames.size()> ring_jobs{};
  /// Of the newest frame that was analysed; not a number before the first, and where none is.
  std::atomic<double> luma_mean{std::numeric_limits<double>::quiet_NaN()};
  std::atomic<int> abandoned_runs{0};  ///< given up, with a thread that is still in its call
  BusyMeter source_wait;               ///< the source thread, waiting for data
  BusyMeter decode_busy;               ///< the source thread, decoding

 private:
  friend class FrameTicket;
  friend void open_tickets(const std::shared_ptr<FeedStats>&, std::span<FrameTicket>);
  template <typename Array>
  static void bump(Array& counters, std::size_t index) {
    counters[index].fetch_add(1, std::memory_order_relaxed);
  }

  const std::string feed_;
  std::deque<EncodeStats> encodes_;         // deque: the elements hold atomics and never move
  std::vector<std::size_t> frame_encodes_;  // those that take frames
  std::deque<OutputStats> outputs_;
  std::deque<LaneStats> lanes_;
  std::atomic<std::int64_t> last_arrival_steady_ns_{0};
  std::atomic<std::int64_t> last_arrival_system_ns_{0};
  mutable std::mutex mutex_;
  Ledger ledger_;
  Status status_;
};

/// A frame's account in one encode: opened when the frame comes in, closed exactly once as out or
/// dropped. The number of open tickets is the ledger's in_flight. Move-only; one thread at a time.
class FrameTicket {
 public:
  FrameTicket() = default;
  FrameTicket(FrameTicket&& other) noexcept = default;
  FrameTicket& operator=(FrameTicket&& other) noexcept;
  /// An open ticket here is a bug: asserts in debug builds, and shows as a broken balance in
  /// others.
  ~FrameTicket();

  explicit operator bool() const { return stats_ != nullptr; }
  void out();
  void drop(DropReason reason);

 private:
  friend void open_tickets(const std::shared_ptr<FeedStats>&, std::span<FrameTicket>);
  std::shared_ptr<FeedStats> stats_;
  std::size_t encode_ = 0;
};

/// A frame is in hand: counts it for the feed and opens its account in every encode that takes
/// frames, all at once. tickets[i] belongs to the i-th of those.
void open_tickets(const std::shared_ptr<FeedStats>& stats, std::span<FrameTicket> tickets);

}  // namespace framelane
