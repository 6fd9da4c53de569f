#include "daemon/stop_loss.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace framelane {
namespace {

std::string counted(std::uint64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

}  // namespace

StopLoss::StopLoss(const FeedStats& stats) {
  for (const FeedStats::EncodeLine& encode : stats.ledger().encodes) {
    for (const DropReason reason : {DropReason::kStop, DropReason::kReload}) {
      frames_ += encode.dropped[index_of(reason)];
      sound_ += encode.stats->audio.counts().dropped[index_of(audio_drop(reason))];
    }
  }
  for (const auto& output : stats.outputs()) {
    outputs_.push_back({output, output->lost_at_stop()});
  }
}

std::string StopLoss::since(const StopLoss& before, std::chrono::milliseconds drain_time) const {
  const std::uint64_t frames = frames_ - before.frames_;
  const std::uint64_t sound = sound_ - before.sound_;
  std::uint64_t packets = 0;
  std::string outputs;
  std::string last;
  for (const OutputLoss& loss : outputs_) {
    const auto earlier = std::ranges::find(before.outputs_, loss.output, &OutputLoss::output);
    const std::uint64_t of_output =
        loss.packets - (earlier != before.outputs_.end() ? earlier->packets : 0);
    if (of_output == 0) continue;
    packets += of_output;
    const std::string& name = loss.output->name;
    // An output with several encodes has a count for each.
    if (std::exchange(last, name) == name) continue;
    outputs += (outputs.empty() ? "output " : ", ") + name;
  }
  if (frames == 0 && sound == 0 && packets == 0) return {};
  const std::string culprit = !outputs.empty() ? outputs + ": see whether a peer or disk is slow"
                              : frames > 0     ? "the encoder: a faster preset helps"
                                               : "the sound";
  return fmt::format(
      "stopped with {} and {} not delivered{}; {:.1f} s were not enough for {}",
      counted(frames, "frame"), counted(packets, "packet"),
      sound == 0 ? "" : fmt::format(", {} of sound not transcoded", counted(sound, "packet")),
      std::chrono::duration<double>(drain_time).count(), culprit);
}

}  // namespace framelane
