#pragma once

#include <cstdint>

namespace framelane {

/// Decides how sound stays in step with its timestamps, though a camera's sampling clock drifts
/// against its timestamps and packets are lost. All counts are in samples of the encoder.
///
/// Small errors are drift: they are removed slowly, by making the sound a little longer or shorter,
/// which nobody hears. Errors above kTolerance are removed at once, by silence or by leaving
/// samples out. A source whose timestamps are themselves inexact gets more tolerance, or its sound
/// would be cut up: lost packets only leave holes, so timestamps that overlap by a little, and not
/// only once, show such a source. Holes of more than a second are left as holes in the timestamps.
///
/// Knows nothing of FFmpeg and reads no clock. One thread.
class AudioSync {
 public:
  static constexpr double kTolerance = 0.015;  ///< seconds

  explicit AudioSync(int rate) : rate_(rate) {}

  struct Step {
    enum class Kind {
      kSteady,   ///< only `stretch`
      kSilence,  ///< `samples` of silence come first
      kTrim,     ///< the next `samples` are left out
      kJump,     ///< nothing is written for `samples`
    } kind = Kind::kSteady;
    std::int64_t samples = 0;
    int stretch = 0;  ///< how many samples every stretch_span() samples are to grow by
  };
  /// For each decoded frame of `samples`: its first sample belongs at `start` and would lie at
  /// `here`. After a jump the same frame comes again.
  Step step(std::int64_t start, std::int64_t samples, std::int64_t here);
  int stretch_span() const { return rate_ * kStretchSpan; }

 private:
  static constexpr int kStretchSpan = 10;  // seconds

  double tolerance() const;
  void note_jitter(std::int64_t start, std::int64_t samples);

  int rate_;
  double error_ = 0;  // samples, smoothed
  // How far (samples) timestamps overlapped of late, at most, and at least twice.
  double overlap_ = 0;
  double repeated_overlap_ = 0;
  std::int64_t previous_end_ = INT64_MAX;
};

}  // namespace framelane
