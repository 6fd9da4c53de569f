#include "pipeline/source/capture_clock.hpp"

#include <algorithm>
#include <cstddef>

namespace framelane {
namespace {

/// Drift makes no larger error.
constexpr std::int64_t kStepUs = 100'000;
/// Zero moves by at most a thousandth of the time that passes; clocks differ by a fifth of that.
constexpr std::int64_t kSlew = 1000;

}  // namespace

void CaptureClock::forget() {
  restart();
  line_.forget();
}

void CaptureClock::restart() {
  least_in_.fill(kNothing);
  bucket_ = kNone;
  least_ = kNothing;
}

std::int64_t& CaptureClock::bucket_at(std::int64_t number) {
  const auto count = static_cast<std::int64_t>(least_in_.size());
  return least_in_[static_cast<std::size_t>((number % count + count) % count)];
}

/// Empties the buckets between the newest one and this one.
void CaptureClock::turn_to(std::int64_t bucket) {
  const auto count = static_cast<std::int64_t>(least_in_.size());
  for (std::int64_t i = std::max(bucket_, bucket - count) + 1; i <= bucket; ++i) {
    bucket_at(i) = kNothing;
  }
  bucket_ = bucket;
  least_ = std::ranges::min(least_in_);
}

void CaptureClock::observe(std::int64_t line_us, std::int64_t arrived_us) {
  const auto credible = [](std::int64_t us) {
    return us >= -LineClock::kFarthestUs && us <= LineClock::kFarthestUs;
  };
  if (!credible(line_us) || !credible(arrived_us)) return;
  const std::int64_t zero = arrived_us - line_us;
  const std::int64_t bucket = arrived_us / kBucketUs;
  const bool first = bucket_ == kNone;
  if (bucket > bucket_) turn_to(bucket);
  std::int64_t& least_now = bucket_at(bucket_);
  least_now = std::min(least_now, zero);
  least_ = std::min(least_, zero);

  const std::int64_t passed = first ? 0 : std::max<std::int64_t>(arrived_us - observed_us_, 0);
  observed_us_ = arrived_us;
  if (!known()) return line_.set_zero(least_);
  const std::int64_t error = least_ - zero_us();
  const bool drifts = error >= -kStepUs && error <= kStepUs;
  const std::int64_t most = drifts ? passed / kSlew : kNothing;
  line_.set_zero(zero_us() + std::clamp(error, -most, most));
}

}  // namespace framelane
