#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "pipeline/base/labels.hpp"
#include "pipeline/measure/audio_stats.hpp"
#include "pipeline/measure/busy_meter.hpp"
#include "pipeline/measure/completed_file.hpp"
#include "pipeline/measure/engine_meters.hpp"
#include "pipeline/measure/flight_recorder.hpp"
#include "pipeline/measure/histogram.hpp"
#include "pipeline/measure/retention_stats.hpp"

namespace framelane {

template <typename Names>
using CounterArray = std::array<std::atomic<std::uint64_t>, std::tuple_size_v<Names>>;

/// What the ledger counts of one encode. Always: in = out + the sum of dropped + in_flight.
struct EncodeCounts {
  std::uint64_t in = 0;
  std::uint64_t out = 0;
  std::array<std::uint64_t, kDropReasonNames.size()> dropped{};
  std::int64_t in_flight = 0;
};

/// How often something has failed, and how it did the last time. What is tried again and fails once
/// more has failed twice.
struct FaultCount {
  std::uint64_t count = 0;
  std::string_view code{};  ///< a name of labels.hpp, as in log::Fault
  std::string reason{};
  std::chrono::system_clock::time_point at{};
  /// When it had last worked: of a source, when the last frame or packet came.
  std::chrono::system_clock::time_point worked_until{};

  void add(std::string_view fault_code, std::string why,
           std::chrono::system_clock::time_point worked);
};

/// What one output counts. Any thread.
struct OutputStats {
  explicit OutputStats(std::string output_name, TraceTrack output_trace = {})
      : name(std::move(output_name)), trace(std::move(output_trace)) {}

  const std::string name;
  const TraceTrack trace;  ///< of the output's thread
  std::atomic<bool> up{false};
  std::atomic<bool> paused{false};  ///< waits before another try: disk full, connection lost
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<std::uint32_t> queue_packets{0};
  CounterArray<decltype(kPacketDropNames)> packets_dropped{};
  /// Of those with kWaitKeyframe: they depend on packets that were lost.
  std::atomic<std::uint64_t> dependents_dropped{0};
  CounterArray<decltype(kIoFaultNames)> reconnects{};
  BusyMeter busy;  ///< the output's thread, writing
  /// False if the last run has left no file without its final name, as far as it knows.
  std::atomic<bool> leaves_parts{true};
  /// Shared with Retention, whose threads may outlive the feed.
  const std::shared_ptr<RetentionStats> retention = std::make_shared<RetentionStats>();

  void drop(PacketDrop reason, std::uint64_t count = 1) {
    packets_dropped[index_of(reason)].fetch_add(count, std::memory_order_relaxed);
  }
  /// A packet before the next keyframe, behind one that was lost.
  void drop_dependent() {
    drop(PacketDrop::kWaitKeyframe);
    dependents_dropped.fetch_add(1, std::memory_order_relaxed);
  }
  /// Packets that it was stopped before it could write.
  std::uint64_t lost_at_stop() const { return packets_dropped[index_of(PacketDrop::kStop)]; }
  /// Call when a run of the output begins; returns the run's number. Only the latest run may set
  /// the state, so that an abandoned thread of an earlier run cannot.
  std::uint64_t begin_run();
  /// Sets state and reason (for the status API), `up` and `paused`. Ignored unless `run` is the
  /// latest. `code`: of the fault that the state is about, which is counted; empty: of none.
  void set_state(std::uint64_t run, FeedState state, std::string reason,
                 std::string_view code = {});
  std::pair<FeedState, std::string> state() const;
  FaultCount faults() const;

 private:
  mutable std::mutex mutex_;
  std::uint64_t run_ = 0;
  FeedState state_ = FeedState::kConnecting;
  std::string reason_;
  FaultCount faults_;
};

/// What one encode counts beside the ledger. Any thread.
struct EncodeStats {
  EncodeStats(std::string encode_name, bool copies, bool transcodes_audio,
              TraceTrack encode_trace = {})
      : name(std::move(encode_name)),
        trace(std::move(encode_trace)),
        copy(copies),
        audio(transcodes_audio) {}

  const std::string name;
  const TraceTrack trace;  ///< of the encode thread; also the frames that it does not get
  const bool copy;         ///< packets pass unchanged: no frames, no ledger
  AudioStats audio;        ///< its sound, if that is transcoded
  Histogram latency;       ///< from a frame's decoding to its packet in the queues
  BusyMeter busy;          ///< the encode thread, encoding
  /// What was opened. `width` and `height`: in pixels, of the pictures that the encoder gets.
  void set_encoder(std::string codec, int width, int height);
  std::string codec() const;
  /// {0, 0} before an encoder is opened, and if it copies.
  std::pair<int, int> size() const;
  /// Why no encoder can be opened for what comes; empty if one is open. Each reason is counted as a
  /// fault.
  void set_reason(std::string reason);
  std::string reason() const;
  FaultCount faults() const;

 private:
  mutable std::mutex mutex_;
  std::string codec_;
  std::pair<int, int> size_{0, 0};
  std::string reason_;
  FaultCount faults_;
};

struct LaneStats {
  EngineMeters busy{};
  BusyMeter held{};  ///< on a GPU: the lane had a frame, also one that waited for other work
  TraceTrack trace{};
};

class FrameTicket;

/// How many jobs of a ring are in each RingState.
using RingJobs = std::array<std::atomic<std::uint32_t>, kRingStateNames.size()>;

/// Everything that a feed counts. Belongs to the feed's name and outlives the feed's restarts. The
/// ledger and the status change under one small lock, so that every snapshot balances; the other
/// counts are atomic. Any thread may use all of it.
class FeedStats {
 public:
  struct EncodeSpec {
    std::string name;
    bool copy = false;
    bool transcodes_audio = false;
  };
  /// What is counted: all of it is in the order of the configuration.
  struct Shape {
    std::vector<EncodeSpec> encodes;
    std::vector<std::string> outputs;  ///< names; an output with several encodes is here for each
    int lanes = 0;
  };
  /// What the ledger counts of one encode, and what else that counts.
  struct EncodeLine : EncodeCounts {
    std::shared_ptr<EncodeStats> stats;
  };
  /// `recorder`: gets what the feed's threads and lanes do; may be null. `on_file`: is told of the
  /// files that its outputs complete.
  FeedStats(std::string feed, const Shape& shape,
            std::shared_ptr<FlightRecorder> recorder = nullptr, OnCompletedFile on_file = {});
  FeedStats(std::string feed, const std::vector<EncodeSpec>& encodes,
            const std::vector<std::string>& outputs, int lanes)
      : FeedStats(std::move(feed), Shape{encodes, outputs, lanes}) {}

  /// The feed has another configuration from now on. What keeps its name goes on counting where it
  /// was. An encode that is new has dropped all frames that came before. Threads may still use what
  /// they have: it is only shown no more.
  void reshape(const Shape& shape);

  const std::string& feed() const { return feed_; }
  /// Of the source thread.
  const TraceTrack& trace() const { return trace_; }
  /// An output has completed a file.
  void completed(const CompletedFile& file) const {
    if (on_file_) on_file_(file);
  }
  /// See also ledger(), which has all encodes.
  EncodeStats& encode(std::size_t index) const;
  /// The line of the encode of this name, for open_tickets; null if there is none.
  std::shared_ptr<EncodeLine> line(const std::string& encode) const;
  /// Why the encode of this name is down; empty if it is not, or if there is none.
  std::string encode_reason(const std::string& encode) const;
  std::vector<std::shared_ptr<OutputStats>> outputs() const;
  std::vector<std::shared_ptr<LaneStats>> lanes() const;

  struct Status {
    FeedState state = FeedState::kConnecting;
    std::string reason;                           ///< why it is not running; empty if it is
    std::chrono::system_clock::time_point since;  ///< in this state
    std::string decoder;
    std::string decoder_reason;  ///< on a GPU, why the decoder is not NVDEC; else empty
    std::string device;
    std::string size;    ///< of the source's pictures: "1920x1080"; empty before the first
    std::string format;  ///< what comes: "h264 1920x1080"; empty before the first packet or frame
    FaultCount faults;
  };
  struct Ledger {
    std::uint64_t frames_in = 0;
    std::vector<EncodeLine> encodes;
  };
  Status status() const;
  Ledger ledger() const;
  /// How many frames the encode of this name has in hand. None if it only copies.
  std::int64_t in_flight(const std::string& encode) const;

  /// The number of the present run. What belongs to a run takes this once, when it is made.
  std::uint32_t run() const;
  /// The jobs of the present run; likewise.
  std::shared_ptr<RingJobs> ring_jobs() const;
  /// The present run has threads that are abandoned. What they leave unfinished is taken as ended
  /// now: their frames and sound are dropped with this reason, and their work and jobs are none.
  /// When their calls return after all, nothing of it is counted again, and what they deliver is
  /// not counted.
  void abandon_run(DropReason reason);

  /// `code`: of the fault that the state is about, which is counted; empty: of none.
  void set_state(FeedState state, std::string reason, std::string_view code = {});
  /// The same for a thread of a run. Changes nothing and returns false if the run is abandoned.
  bool set_state(std::uint32_t run, FeedState state, std::string reason,
                 std::string_view code = {});
  void set_format(std::string format);
  void set_decoder(std::string decoder);
  /// True if the reason has changed.
  bool set_decoder_reason(std::string reason);
  void set_device(std::string device);
  void set_size(int width, int height);

  /// Marks that a frame or a copied packet has just arrived, unless the run is abandoned.
  void arrived(std::uint32_t run);
  /// When something last arrived, for the metric; the clock's epoch before the first arrival.
  std::chrono::system_clock::time_point last_arrival() const;
  /// How long before `now` that was, for deciding whether the feed is up; the largest duration
  /// before the first arrival.
  std::chrono::steady_clock::duration since_arrival(
      std::chrono::steady_clock::time_point now) const;

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
  /// That the producer of an input in shared memory has published and not given to this feed.
  std::atomic<std::uint64_t> frames_missed{0};
  std::atomic<std::uint64_t> packets_skipped{0};  ///< not decoded, because of `skip`
  /// Of the newest frame that was analysed. NaN before the first, and while frames are not
  /// analysed.
  std::atomic<double> luma_mean{std::numeric_limits<double>::quiet_NaN()};
  std::atomic<int> abandoned_runs{0};  ///< runs of which an abandoned thread is still in its call
  BusyMeter source_wait;               ///< the source thread, waiting for data
  BusyMeter decode_busy;               ///< the source thread, decoding

 private:
  friend class FrameTicket;
  friend void open_tickets(const std::shared_ptr<FeedStats>&, std::uint32_t,
                           std::span<const std::shared_ptr<EncodeLine>>, std::span<FrameTicket>,
                           std::int64_t);
  /// Requires mutex_.
  void apply_state(FeedState state, std::string reason, std::string_view code);
  template <typename Array>
  static void bump(Array& counters, std::size_t index) {
    counters[index].fetch_add(1, std::memory_order_relaxed);
  }
  TraceTrack track(const std::string& name) const { return {recorder_, feed_, name}; }

  const std::string feed_;
  const std::shared_ptr<FlightRecorder> recorder_;
  const TraceTrack trace_;
  const OnCompletedFile on_file_;
  std::atomic<std::int64_t> last_arrival_steady_ns_{0};
  std::atomic<std::int64_t> last_arrival_system_ns_{0};
  mutable std::mutex mutex_;  // guards all that follows
  std::uint64_t frames_in_ = 0;
  std::vector<std::shared_ptr<EncodeLine>> encodes_;
  std::vector<std::shared_ptr<OutputStats>> outputs_;
  std::vector<std::shared_ptr<LaneStats>> lanes_;
  Status status_;
  std::uint32_t run_ = 0;  // earlier ones are abandoned: their tickets are closed
  std::shared_ptr<RingJobs> ring_jobs_ = std::make_shared<RingJobs>();
};

/// A frame's entry in one encode's line of the ledger. open_tickets opens it when the frame comes
/// in; out() or drop() closes it, exactly once. The open tickets are the ledger's in_flight.
/// Move-only; one thread at a time.
class FrameTicket {
 public:
  FrameTicket() = default;
  FrameTicket(FrameTicket&& other) noexcept = default;
  FrameTicket& operator=(FrameTicket&& other) noexcept;
  /// The ticket must be closed. An open one asserts in debug builds; in others the frame leaves
  /// in_flight without an end, and the ledger does not balance.
  ~FrameTicket();

  explicit operator bool() const { return stats_ != nullptr; }
  void out();
  void drop(DropReason reason);

 private:
  friend void open_tickets(const std::shared_ptr<FeedStats>&, std::uint32_t,
                           std::span<const std::shared_ptr<FeedStats::EncodeLine>>,
                           std::span<FrameTicket>, std::int64_t);
  /// The encode's counts, to close the ticket in them; null if it was closed by abandon_run or
  /// never counted. Requires the mutex of `stats`.
  EncodeCounts* counts(const FeedStats& stats) const;

  std::shared_ptr<FeedStats> stats_;
  std::shared_ptr<FeedStats::EncodeLine> line_;
  std::int64_t frame_ = FlightRecorder::kNoFrame;
  std::uint32_t run_ = 0;
};

/// Counts a frame that has come in, and opens its ticket in each of these lines, all under one
/// lock: tickets[i] is for lines[i]. An encode of the ledger that is not among them takes no frames
/// yet, and has dropped this one too (`reload`). If `run` is abandoned, the frame and its tickets
/// are not counted. `frame`: its name in traces.
void open_tickets(const std::shared_ptr<FeedStats>& stats, std::uint32_t run,
                  std::span<const std::shared_ptr<FeedStats::EncodeLine>> lines,
                  std::span<FrameTicket> tickets, std::int64_t frame = FlightRecorder::kNoFrame);

}  // namespace framelane
