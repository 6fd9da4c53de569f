#include "pipeline/encode/audio_sync.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace framelane {
namespace {

/// Longer holes (s) are not filled: silence for hours would hold up the source's thread.
constexpr double kLongestFill = 1;
/// Time constants (s). Errors are smoothed over the first and removed over the second, so that a
/// drift of 200 ppm leaves an error of 2 ms.
constexpr double kSmoothing = 1;
constexpr double kCorrection = 10;
/// By how much the sound is made longer or shorter at most: a twelfth of a semitone.
constexpr double kMaxStretch = 0.005;
/// A larger overlap (s) is a discontinuity and no jitter.
constexpr double kMaxJitter = 0.060;
/// How long (s) jitter is remembered. Cameras correct their clock every few seconds.
constexpr double kJitterMemory = 60;

}  // namespace

AudioSync::Step AudioSync::step(std::int64_t start, std::int64_t samples, std::int64_t here) {
  const std::int64_t error = start - here;
  const double tolerated = tolerance();
  if (static_cast<double>(error) > kLongestFill * rate_) {
    error_ = 0;
    return {Step::Kind::kJump, error, 0};
  }
  note_jitter(start, samples);
  if (std::abs(static_cast<double>(error)) > tolerated) {
    error_ = 0;
    return {error > 0 ? Step::Kind::kSilence : Step::Kind::kTrim, std::abs(error), 0};
  }
  const double weight = std::min(1.0, static_cast<double>(samples) / (kSmoothing * rate_));
  error_ += (static_cast<double>(error) - error_) * weight;
  const double stretch = std::clamp(error_ / (kCorrection * rate_), -kMaxStretch, kMaxStretch);
  return {Step::Kind::kSteady, 0, static_cast<int>(std::lround(stretch * stretch_span()))};
}

double AudioSync::tolerance() const {
  return std::max(kTolerance * rate_, 1.5 * repeated_overlap_);
}

void AudioSync::note_jitter(std::int64_t start, std::int64_t samples) {
  const double kept = 1 - std::min(1.0, static_cast<double>(samples) / (kJitterMemory * rate_));
  overlap_ *= kept;
  repeated_overlap_ *= kept;
  if (previous_end_ != INT64_MAX) {
    const auto overlap = static_cast<double>(previous_end_ - start);
    if (overlap > 0 && overlap <= kMaxJitter * rate_) {
      repeated_overlap_ = std::max(repeated_overlap_, std::min(overlap_, overlap));
      overlap_ = std::max(overlap_, overlap);
    }
  }
  previous_end_ = start + samples;
}

}  // namespace framelane
