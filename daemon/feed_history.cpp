#include "daemon/feed_history.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "pipeline/measure/output_totals.hpp"

namespace framelane {
namespace {

double seconds_between(const FeedCounts& a, const FeedCounts& b) {
  return std::chrono::duration<double>(b.at - a.at).count();
}

std::optional<double> rate_between(const FeedCounts& a, const FeedCounts& b, std::uint64_t from,
                                   std::uint64_t to) {
  const double time = seconds_between(a, b);
  if (time <= 0 || to < from) return std::nullopt;
  return static_cast<double>(to - from) / time;
}

/// True if the one can have become the other while the feed went on.
bool continues(const FeedCounts& a, const FeedCounts& b) {
  return a.frames_in <= b.frames_in && a.frames_out <= b.frames_out && a.bytes_in <= b.bytes_in &&
         a.bytes_out <= b.bytes_out && a.encode_frames.size() == b.encode_frames.size() &&
         a.output_bytes.size() == b.output_bytes.size();
}

}  // namespace

bool is_loss(DropReason reason) {
  return reason != DropReason::kRate && reason != DropReason::kReload &&
         reason != DropReason::kStop;
}

std::uint64_t FeedCounts::lost() const {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < dropped.size(); ++i) {
    if (is_loss(static_cast<DropReason>(i))) sum += dropped[i];
  }
  return sum;
}

FeedCounts counts_of(const FeedStats& stats, std::chrono::steady_clock::time_point now) {
  FeedCounts counts{.at = now, .bytes_in = stats.input_bytes};
  const FeedStats::Ledger ledger = stats.ledger();
  counts.frames_in = ledger.frames_in;
  for (const FeedStats::EncodeLine& line : ledger.encodes) {
    counts.encode_frames.push_back(line.out);
    if (line.stats->copy) continue;
    counts.decodes = true;
    counts.frames_out += line.out;
    for (std::size_t i = 0; i < counts.dropped.size(); ++i) counts.dropped[i] += line.dropped[i];
    const Histogram::Snapshot latency = line.stats->latency.snapshot();
    for (std::size_t i = 0; i < counts.latency.size(); ++i) counts.latency[i] += latency.counts[i];
  }
  for (const OutputTotals& output : output_totals(stats)) {
    counts.output_bytes.push_back(output.bytes);
    counts.output_losses.push_back(output.faults.count);
    counts.output_packets_lost.push_back(output.packets_lost);
    counts.bytes_out += output.bytes;
  }
  return counts;
}

void FeedHistory::add(FeedCounts counts) {
  if (!seconds_.empty() && !continues(seconds_.back(), counts)) {
    seconds_.clear();
    at_point_.reset();
  }
  seconds_.push_back(std::move(counts));
  while (seconds_.size() > 2 && latest().at - seconds_[1].at >= kLatencyTime) seconds_.pop_front();
  // Samples come a second apart, or a little more or less.
  constexpr std::chrono::milliseconds kSlack{500};
  if (at_point_ && latest().at - at_point_->at < kInterval - kSlack) return;
  Point point;
  if (at_point_) {
    const FeedCounts& last = *at_point_;
    if (latest().decodes) {
      point.fps_in = rate_between(last, latest(), last.frames_in, latest().frames_in);
      point.fps_out = rate_between(last, latest(), last.frames_out, latest().frames_out);
    }
    point.bits = rate_between(last, latest(), 8 * last.bytes_in, 8 * latest().bytes_in);
    point.lost = latest().lost() - std::min(latest().lost(), last.lost());
  }
  at_point_ = latest();
  points_.push_back(point);
  if (points_.size() > kPoints) points_.pop_front();
}

const FeedCounts& FeedHistory::before(std::chrono::seconds time) const {
  const auto then = latest().at - time;
  const auto found = std::find_if(seconds_.rbegin(), seconds_.rend(),
                                  [&](const FeedCounts& counts) { return counts.at <= then; });
  return found != seconds_.rend() ? *found : seconds_.front();
}

std::optional<double> FeedHistory::rate(std::uint64_t FeedCounts::*count) const {
  const FeedCounts& then = before(kRateTime);
  return rate_between(then, latest(), then.*count, latest().*count);
}

std::optional<double> FeedHistory::rate(std::vector<std::uint64_t> FeedCounts::*counts,
                                        std::size_t index) const {
  const FeedCounts& then = before(kRateTime);
  if (index >= (then.*counts).size() || index >= (latest().*counts).size()) return std::nullopt;
  return rate_between(then, latest(), (then.*counts)[index], (latest().*counts)[index]);
}

std::uint64_t FeedHistory::lost_recently() const {
  const std::uint64_t then = before(kRecentTime).lost();
  return latest().lost() - std::min(latest().lost(), then);
}

std::uint64_t FeedHistory::output_losses_recently(std::size_t index) const {
  return rise(&FeedCounts::output_losses, index);
}

std::uint64_t FeedHistory::packets_lost_recently(std::size_t index) const {
  return rise(&FeedCounts::output_packets_lost, index);
}

std::uint64_t FeedHistory::rise(std::vector<std::uint64_t> FeedCounts::*counts,
                                std::size_t index) const {
  const auto& then = before(kTroubleTime).*counts;
  const auto& now = latest().*counts;
  if (index >= then.size() || index >= now.size()) return 0;
  return now[index] - std::min(now[index], then[index]);
}

std::optional<double> FeedHistory::latency(double share) const {
  const FeedCounts& then = before(kLatencyTime);
  std::array<std::uint64_t, std::tuple_size_v<decltype(then.latency)>> counts{};
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    counts[i] = latest().latency[i] - std::min(latest().latency[i], then.latency[i]);
    all += counts[i];
  }
  if (all == 0) return std::nullopt;
  double rank = share * static_cast<double>(all);
  for (std::size_t i = 0; i < Histogram::kBounds.size(); ++i) {
    const auto in_bucket = static_cast<double>(counts[i]);
    if (rank > in_bucket) {
      rank -= in_bucket;
      continue;
    }
    const double low = i == 0 ? 0 : Histogram::kBounds[i - 1];
    return low + (Histogram::kBounds[i] - low) * (in_bucket > 0 ? rank / in_bucket : 0);
  }
  return Histogram::kBounds.back();  // as Prometheus has it for the last bucket
}

}  // namespace framelane
