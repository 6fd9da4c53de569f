#include "daemon/stop_loss.hpp"

#include <fmt/core.h>

#include <cstddef>
#include <string_view>

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
  for (const OutputStats& output : stats.outputs()) {
    packets_.push_back(output.packets_dropped[index_of(PacketDrop::kStop)]);
  }
}

std::string StopLoss::since(const StopLoss& before, const FeedOptions& options,
                            std::chrono::milliseconds drain_time) const {
  const std::uint64_t frames = frames_ - before.frames_;
  std::uint64_t packets = 0;
  std::string outputs;
  for (std::size_t i = 0; i < packets_.size(); ++i) {
    const std::uint64_t of_output = packets_[i] - before.packets_[i];
    if (of_output == 0) continue;
    packets += of_output;
    outputs += (outputs.empty() ? "output " : ", ") + options.outputs[i].name;
  }
  if (frames == 0 && packets == 0) return {};
  return fmt::format("stopped with {} and {} not delivered; {:.1f} s were not enough for {}",
                     counted(frames, "frame"), counted(packets, "packet"),
                     std::chrono::duration<double>(drain_time).count(),
                     outputs.empty() ? "the encoder: a faster preset helps"
                                     : outputs + ": see whether a peer or disk is slow");
}

}  // namespace framelane
