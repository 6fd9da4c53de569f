#include "pipeline/measure/audio_stats.hpp"

#include <utility>

namespace framelane {

AudioDrop audio_drop(DropReason cancel) {
  switch (cancel) {
    case DropReason::kStop:
      return AudioDrop::kStop;
    case DropReason::kReload:
      return AudioDrop::kReload;
    default:
      return AudioDrop::kFeedFailed;
  }
}

std::uint32_t AudioStats::run() const {
  const std::lock_guard lock(mutex_);
  return run_;
}

void AudioStats::in(std::uint32_t run) {
  const std::lock_guard lock(mutex_);
  if (run != run_) return;
  ++counts_.in;
  ++counts_.in_flight;
}

void AudioStats::out(std::uint32_t run) {
  const std::lock_guard lock(mutex_);
  if (run != run_) return;
  ++counts_.out;
  --counts_.in_flight;
}

void AudioStats::drop(std::uint32_t run, AudioDrop reason) {
  const std::lock_guard lock(mutex_);
  if (run != run_) return;
  ++counts_.dropped[index_of(reason)];
  --counts_.in_flight;
}

void AudioStats::abandon_run(DropReason reason) {
  const std::lock_guard lock(mutex_);
  ++run_;
  counts_.dropped[index_of(audio_drop(reason))] += static_cast<std::uint64_t>(counts_.in_flight);
  counts_.in_flight = 0;
}

AudioCounts AudioStats::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

void AudioStats::set_codec(std::string codec) {
  const std::lock_guard lock(mutex_);
  codec_ = std::move(codec);
}

std::string AudioStats::codec() const {
  const std::lock_guard lock(mutex_);
  return codec_;
}

}  // namespace framelane
