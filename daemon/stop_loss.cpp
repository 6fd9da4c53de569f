#include "daemon/stop_loss.hpp"

#include <fmt/core.h>

#include <cstddef>
#include <string_view>
#include <utility>

namespace framelane {
namespace {

std::string counted(std::uint64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

}  // namespace

StopLoss::StopLoss(const FeedStats& stats) {
  for (const EncodeCounts& encode : stats.ledger().encodes) {
    frames_ += encode.dropped[index_of(DropReason::kStop)];
  }
  for (std::size_t i = 0; i < stats.encode_count(); ++i) {
    sound_ += stats.encode(i).audio.counts().dropped[index_of(AudioDrop::kStop)];
  }
  for (const OutputStats& output : stats.outputs()) {
    packets_.push_back(output.packets_dropped[index_of(PacketDrop::kStop)]);
  }
}

std::string StopLoss::since(const StopLoss& before, const FeedOptions& options,
                            std::chrono::milliseconds drain_time) const {
  const std::uint64_t frames = frames_ - before.frames_;
  const std::uint64_t sound = sound_ - before.sound_;
  std::uint64_t packets = 0;
  std::string outputs;
  std::string last;
  for (std::size_t i = 0; i < packets_.size(); ++i) {
    const std::uint64_t of_output = packets_[i] - before.packets_[i];
    if (of_output == 0) continue;
    packets += of_output;
    const std::string& name = options.outputs[i].name;
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
