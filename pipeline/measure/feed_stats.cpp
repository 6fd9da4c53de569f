#include "pipeline/measure/feed_stats.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <map>
#include <utility>

namespace framelane {

void FaultCount::add(std::string_view fault_code, std::string why,
                     std::chrono::system_clock::time_point worked) {
  ++count;
  code = fault_code;
  reason = std::move(why);
  at = std::chrono::system_clock::now();
  worked_until = worked;
}

std::uint64_t OutputStats::begin_run() {
  const std::lock_guard lock(mutex_);
  return ++run_;
}

void OutputStats::set_state(std::uint64_t run, FeedState state, std::string reason,
                            std::string_view code) {
  const std::lock_guard lock(mutex_);
  if (run != run_) return;
  if (!code.empty()) faults_.add(code, reason, std::chrono::system_clock::now());
  state_ = state;
  up = state == FeedState::kRunning && reason.empty();
  reason_ = std::move(reason);
  paused = state == FeedState::kBackoff;
}

std::pair<FeedState, std::string> OutputStats::state() const {
  const std::lock_guard lock(mutex_);
  return {state_, reason_};
}

FaultCount OutputStats::faults() const {
  const std::lock_guard lock(mutex_);
  return faults_;
}

void EncodeStats::set_encoder(std::string codec, int width, int height) {
  const std::lock_guard lock(mutex_);
  codec_ = std::move(codec);
  size_ = {width, height};
}

std::pair<int, int> EncodeStats::size() const {
  const std::lock_guard lock(mutex_);
  return size_;
}

std::string EncodeStats::codec() const {
  const std::lock_guard lock(mutex_);
  return codec_;
}

void EncodeStats::set_reason(std::string reason) {
  const std::lock_guard lock(mutex_);
  if (!reason.empty()) {
    faults_.add(kFeedFaultNames[index_of(FeedFault::kEncoder)], reason,
                std::chrono::system_clock::now());
  }
  reason_ = std::move(reason);
}

std::string EncodeStats::reason() const {
  const std::lock_guard lock(mutex_);
  return reason_;
}

FaultCount EncodeStats::faults() const {
  const std::lock_guard lock(mutex_);
  return faults_;
}

FeedStats::FeedStats(std::string feed, const Shape& shape, std::shared_ptr<FlightRecorder> recorder,
                     OnCompletedFile on_file)
    : feed_(std::move(feed)),
      recorder_(std::move(recorder)),
      trace_(track("source")),
      on_file_(std::move(on_file)) {
  reshape(shape);
  status_.since = std::chrono::system_clock::now();
}

void FeedStats::reshape(const Shape& shape) {
  const std::lock_guard lock(mutex_);
  const std::vector<std::shared_ptr<EncodeLine>> old_encodes = std::exchange(encodes_, {});
  for (const EncodeSpec& encode : shape.encodes) {
    const auto old = std::ranges::find_if(old_encodes, [&](const auto& line) {
      return line->stats->name == encode.name && line->stats->copy == encode.copy;
    });
    std::shared_ptr<EncodeLine> line;
    if (old != old_encodes.end()) {
      line = *old;
    } else {
      line = std::make_shared<EncodeLine>();
      // Of the frames that came before it was there it has none, and the ledger says so.
      if (!encode.copy) line->in = line->dropped[index_of(DropReason::kReload)] = frames_in_;
    }
    if (line->stats == nullptr || line->stats->audio.transcodes != encode.transcodes_audio) {
      line->stats = std::make_shared<EncodeStats>(encode.name, encode.copy, encode.transcodes_audio,
                                                  track("encode " + encode.name));
    }
    encodes_.push_back(std::move(line));
  }
  std::vector<std::shared_ptr<OutputStats>> old_outputs = std::exchange(outputs_, {});
  std::map<std::string, int> same;  // renditions have the same name, and a thread each
  for (const std::string& name : shape.outputs) {
    const int number = ++same[name];
    const auto old = std::ranges::find_if(
        old_outputs, [&](const auto& output) { return output != nullptr && output->name == name; });
    // Each is taken once: renditions have the same name.
    if (old != old_outputs.end()) {
      outputs_.push_back(std::exchange(*old, nullptr));
      continue;
    }
    const std::string shown =
        number > 1 ? fmt::format("output {} {}", name, number) : "output " + name;
    outputs_.push_back(std::make_shared<OutputStats>(name, track(shown)));
  }
  lanes_.resize(static_cast<std::size_t>(shape.lanes));
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    if (lanes_[i] != nullptr) continue;
    lanes_[i] = std::make_shared<LaneStats>();
    lanes_[i]->trace = track(fmt::format("lane {}", i));
  }
}

EncodeStats& FeedStats::encode(std::size_t index) const {
  const std::lock_guard lock(mutex_);
  return *encodes_[index]->stats;
}

std::shared_ptr<FeedStats::EncodeLine> FeedStats::line(const std::string& encode) const {
  const std::lock_guard lock(mutex_);
  const auto found =
      std::ranges::find_if(encodes_, [&](const auto& line) { return line->stats->name == encode; });
  return found != encodes_.end() ? *found : nullptr;
}

std::string FeedStats::encode_reason(const std::string& encode) const {
  const std::shared_ptr<EncodeLine> found = line(encode);
  if (!found) return {};
  std::shared_ptr<EncodeStats> stats;
  {
    const std::lock_guard lock(mutex_);
    stats = found->stats;
  }
  return stats->reason();
}

std::vector<std::shared_ptr<OutputStats>> FeedStats::outputs() const {
  const std::lock_guard lock(mutex_);
  return outputs_;
}

std::vector<std::shared_ptr<LaneStats>> FeedStats::lanes() const {
  const std::lock_guard lock(mutex_);
  return lanes_;
}

FeedStats::Status FeedStats::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

FeedStats::Ledger FeedStats::ledger() const {
  const std::lock_guard lock(mutex_);
  Ledger ledger{.frames_in = frames_in_, .encodes = {}};
  for (const auto& line : encodes_) ledger.encodes.push_back(*line);
  return ledger;
}

std::uint32_t FeedStats::run() const {
  const std::lock_guard lock(mutex_);
  return run_;
}

std::int64_t FeedStats::in_flight(const std::string& encode) const {
  const std::lock_guard lock(mutex_);
  const auto line =
      std::ranges::find_if(encodes_, [&](const auto& one) { return one->stats->name == encode; });
  return line != encodes_.end() ? (*line)->in_flight : 0;
}

std::shared_ptr<RingJobs> FeedStats::ring_jobs() const {
  const std::lock_guard lock(mutex_);
  return ring_jobs_;
}

void FeedStats::abandon_run(DropReason reason) {
  source_wait.abandon_scopes();
  decode_busy.abandon_scopes();
  for (const EncodeLine& encode : ledger().encodes) {
    encode.stats->busy.abandon_scopes();
    encode.stats->audio.abandon_run(reason);
  }
  for (const auto& output : outputs()) output->busy.abandon_scopes();
  const std::lock_guard lock(mutex_);
  ++run_;
  for (const auto& line : encodes_) {
    line->dropped[index_of(reason)] += static_cast<std::uint64_t>(line->in_flight);
    line->in_flight = 0;
  }
  ring_jobs_ = std::make_shared<RingJobs>();
}

void FeedStats::set_state(FeedState state, std::string reason, std::string_view code) {
  const std::lock_guard lock(mutex_);
  apply_state(state, std::move(reason), code);
}

bool FeedStats::set_state(std::uint32_t run, FeedState state, std::string reason,
                          std::string_view code) {
  const std::lock_guard lock(mutex_);
  if (run != run_) return false;
  apply_state(state, std::move(reason), code);
  return true;
}

void FeedStats::apply_state(FeedState state, std::string reason, std::string_view code) {
  if (!code.empty()) {
    const auto arrival = last_arrival();
    const bool has_worked = arrival != std::chrono::system_clock::time_point();
    status_.faults.add(code, reason, has_worked ? arrival : status_.since);
  }
  if (status_.state != state) status_.since = std::chrono::system_clock::now();
  status_.state = state;
  status_.reason = std::move(reason);
}

void FeedStats::set_decoder(std::string decoder) {
  const std::lock_guard lock(mutex_);
  status_.decoder = std::move(decoder);
}

bool FeedStats::set_decoder_reason(std::string reason) {
  const std::lock_guard lock(mutex_);
  if (status_.decoder_reason == reason) return false;
  status_.decoder_reason = std::move(reason);
  return true;
}

void FeedStats::set_format(std::string format) {
  const std::lock_guard lock(mutex_);
  status_.format = std::move(format);
}

void FeedStats::set_device(std::string device) {
  const std::lock_guard lock(mutex_);
  status_.device = std::move(device);
}

void FeedStats::set_size(int width, int height) {
  const std::lock_guard lock(mutex_);
  status_.size = fmt::format("{}x{}", width, height);
}

void FeedStats::arrived(std::uint32_t run) {
  using std::chrono::nanoseconds;
  const std::lock_guard lock(mutex_);
  if (run != run_) return;
  last_arrival_steady_ns_ = std::chrono::steady_clock::now().time_since_epoch() / nanoseconds(1);
  last_arrival_system_ns_ = std::chrono::system_clock::now().time_since_epoch() / nanoseconds(1);
}

std::chrono::system_clock::time_point FeedStats::last_arrival() const {
  return std::chrono::system_clock::time_point(
      std::chrono::duration_cast<std::chrono::system_clock::duration>(
          std::chrono::nanoseconds(last_arrival_system_ns_)));
}

std::chrono::steady_clock::duration FeedStats::since_arrival(
    std::chrono::steady_clock::time_point now) const {
  const std::int64_t last = last_arrival_steady_ns_;
  if (last == 0) return std::chrono::steady_clock::duration::max();
  return now.time_since_epoch() - std::chrono::nanoseconds(last);
}

void open_tickets(const std::shared_ptr<FeedStats>& stats, std::uint32_t run,
                  std::span<const std::shared_ptr<FeedStats::EncodeLine>> lines,
                  std::span<FrameTicket> tickets, std::int64_t frame) {
  assert(tickets.size() == lines.size());
  const std::lock_guard lock(stats->mutex_);
  const bool counts = run == stats->run_;
  if (counts) ++stats->frames_in_;
  for (std::size_t i = 0; i < tickets.size(); ++i) {
    assert(!tickets[i] && "a ticket was reopened before its frame ended");
    tickets[i].stats_ = stats;
    tickets[i].line_ = lines[i];
    tickets[i].frame_ = frame;
    tickets[i].run_ = run;
    if (!counts) continue;
    ++lines[i]->in;
    ++lines[i]->in_flight;
  }
  if (!counts) return;
  for (const auto& line : stats->encodes_) {
    if (line->stats->copy || std::ranges::find(lines, line) != lines.end()) continue;
    ++line->in;
    ++line->dropped[index_of(DropReason::kReload)];
  }
}

FrameTicket& FrameTicket::operator=(FrameTicket&& other) noexcept {
  assert(stats_ == nullptr && "a ticket was overwritten before its frame ended");
  stats_ = std::move(other.stats_);
  line_ = std::move(other.line_);
  frame_ = other.frame_;
  run_ = other.run_;
  return *this;
}

EncodeCounts* FrameTicket::counts(const FeedStats& stats) const {
  return run_ == stats.run_ ? line_.get() : nullptr;
}

FrameTicket::~FrameTicket() {
  assert(stats_ == nullptr && "a frame was lost without being counted");
  if (stats_ == nullptr) return;
  const std::lock_guard lock(stats_->mutex_);
  if (EncodeCounts* const open = counts(*stats_)) --open->in_flight;
}

void FrameTicket::out() {
  const std::shared_ptr<FeedStats> stats = std::move(stats_);
  const std::lock_guard lock(stats->mutex_);
  EncodeCounts* const open = counts(*stats);
  if (open == nullptr) return;
  ++open->out;
  --open->in_flight;
  line_.reset();
}

void FrameTicket::drop(DropReason reason) {
  const std::shared_ptr<FeedStats> stats = std::move(stats_);
  const std::lock_guard lock(stats->mutex_);
  EncodeCounts* const open = counts(*stats);
  if (open == nullptr) return;
  ++open->dropped[index_of(reason)];
  --open->in_flight;
  line_->stats->trace.mark(TraceKind::kDrop, frame_, static_cast<std::uint8_t>(reason));
  line_.reset();
}

}  // namespace framelane
