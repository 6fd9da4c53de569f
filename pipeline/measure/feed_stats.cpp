#include "pipeline/measure/feed_stats.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace framelane {

std::uint64_t OutputStats::begin_run() {
  const std::lock_guard lock(mutex_);
  return ++run_;
}

void OutputStats::set_state(std::uint64_t run, FeedState state, std::string reason) {
  const std::lock_guard lock(mutex_);
  if (run != run_) return;
  state_ = state;
  reason_ = std::move(reason);
  up = state == FeedState::kRunning;
  paused = state == FeedState::kBackoff;
}

std::pair<FeedState, std::string> OutputStats::state() const {
  const std::lock_guard lock(mutex_);
  return {state_, reason_};
}

void EncodeStats::set_codec(std::string codec) {
  const std::lock_guard lock(mutex_);
  codec_ = std::move(codec);
}

std::string EncodeStats::codec() const {
  const std::lock_guard lock(mutex_);
  return codec_;
}

void EncodeStats::set_reason(std::string reason) {
  const std::lock_guard lock(mutex_);
  reason_ = std::move(reason);
}

std::string EncodeStats::reason() const {
  const std::lock_guard lock(mutex_);
  return reason_;
}

FeedStats::FeedStats(std::string feed, const Shape& shape) : feed_(std::move(feed)) {
  reshape(shape);
  status_.since = std::chrono::system_clock::now();
}

void FeedStats::reshape(const Shape& shape) {
  const std::lock_guard lock(mutex_);
  const std::vector<EncodeLine> old_encodes = std::exchange(ledger_.encodes, {});
  frame_encodes_.clear();
  for (const EncodeSpec& encode : shape.encodes) {
    if (!encode.copy) frame_encodes_.push_back(ledger_.encodes.size());
    const auto old = std::ranges::find_if(old_encodes, [&](const EncodeLine& line) {
      return line.stats->name == encode.name && line.stats->copy == encode.copy;
    });
    EncodeLine line;
    if (old != old_encodes.end()) {
      line = *old;
    } else if (!encode.copy) {
      // Of the frames that came before it was there it has none, and the ledger says so.
      line.in = line.dropped[index_of(DropReason::kReload)] = ledger_.frames_in;
    }
    if (line.stats == nullptr || line.stats->audio.transcodes != encode.transcodes_audio) {
      line.stats = std::make_shared<EncodeStats>(encode.name, encode.copy, encode.transcodes_audio);
    }
    ledger_.encodes.push_back(std::move(line));
  }
  std::vector<std::shared_ptr<OutputStats>> old_outputs = std::exchange(outputs_, {});
  for (const std::string& name : shape.outputs) {
    const auto old = std::ranges::find_if(
        old_outputs, [&](const auto& output) { return output != nullptr && output->name == name; });
    // Each is taken once: renditions have the same name.
    outputs_.push_back(old != old_outputs.end() ? std::exchange(*old, nullptr)
                                                : std::make_shared<OutputStats>(name));
  }
  lanes_.resize(static_cast<std::size_t>(shape.lanes));
  for (std::shared_ptr<LaneStats>& lane : lanes_) {
    if (lane == nullptr) lane = std::make_shared<LaneStats>();
  }
}

EncodeStats& FeedStats::encode(std::size_t index) const {
  const std::lock_guard lock(mutex_);
  return *ledger_.encodes[index].stats;
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
  return ledger_;
}

std::uint32_t FeedStats::run() const {
  const std::lock_guard lock(mutex_);
  return run_;
}

std::int64_t FeedStats::in_flight(const std::string& encode) const {
  const std::lock_guard lock(mutex_);
  const auto line = std::ranges::find_if(
      ledger_.encodes, [&](const EncodeLine& one) { return one.stats->name == encode; });
  return line != ledger_.encodes.end() ? line->in_flight : 0;
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
  for (EncodeCounts& counts : ledger_.encodes) {
    counts.dropped[index_of(reason)] += static_cast<std::uint64_t>(counts.in_flight);
    counts.in_flight = 0;
  }
  ring_jobs_ = std::make_shared<RingJobs>();
}

void FeedStats::set_state(FeedState state, std::string reason) {
  const std::lock_guard lock(mutex_);
  apply_state(state, std::move(reason));
}

bool FeedStats::set_state(std::uint32_t run, FeedState state, std::string reason) {
  const std::lock_guard lock(mutex_);
  if (run != run_) return false;
  apply_state(state, std::move(reason));
  return true;
}

void FeedStats::apply_state(FeedState state, std::string reason) {
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

void FeedStats::set_device(std::string device) {
  const std::lock_guard lock(mutex_);
  status_.device = std::move(device);
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
                  std::span<FrameTicket> tickets) {
  const std::lock_guard lock(stats->mutex_);
  const bool counts = run == stats->run_;
  // An abandoned run may have other encodes.
  assert(!counts || tickets.size() == stats->frame_encodes_.size());
  if (counts) ++stats->ledger_.frames_in;
  for (std::size_t i = 0; i < tickets.size(); ++i) {
    assert(!tickets[i] && "a ticket was reopened before its frame ended");
    tickets[i].stats_ = stats;
    tickets[i].run_ = run;
    if (!counts) continue;
    tickets[i].encode_ = stats->frame_encodes_[i];
    EncodeCounts& encode = stats->ledger_.encodes[tickets[i].encode_];
    ++encode.in;
    ++encode.in_flight;
  }
}

FrameTicket& FrameTicket::operator=(FrameTicket&& other) noexcept {
  assert(stats_ == nullptr && "a ticket was overwritten before its frame ended");
  stats_ = std::move(other.stats_);
  encode_ = other.encode_;
  run_ = other.run_;
  return *this;
}

EncodeCounts* FrameTicket::counts(FeedStats& stats) const {
  return run_ == stats.run_ ? &stats.ledger_.encodes[encode_] : nullptr;
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
}

void FrameTicket::drop(DropReason reason) {
  const std::shared_ptr<FeedStats> stats = std::move(stats_);
  const std::lock_guard lock(stats->mutex_);
  EncodeCounts* const open = counts(*stats);
  if (open == nullptr) return;
  ++open->dropped[index_of(reason)];
  --open->in_flight;
}

}  // namespace framelane
