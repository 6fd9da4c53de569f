#include "pipeline/packets/packet_fanout.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace framelane {

PacketFanout::PacketFanout(std::vector<OutputInlet*> outputs) : outputs_(std::move(outputs)) {}

void PacketFanout::add(OutputInlet& output) {
  std::lock_guard lock(mutex_);
  if (blocks_) output.set_blocks(*blocks_);
  if (finished_) output.finish();
  output.request_resume();
  outputs_.push_back(&output);
}

void PacketFanout::remove(OutputInlet& output) {
  std::lock_guard lock(mutex_);
  take_out(output);
}

void PacketFanout::take_out(OutputInlet& output) {
  const auto it = std::ranges::find(replacements_, &output, &Replacement::next);
  if (it != replacements_.end()) {
    OutputInlet* const replaced = it->output;
    replacements_.erase(it);
    take_out(*replaced);  // it was to go in any case
  }
  std::erase(outputs_, &output);
  output.leave();
}

void PacketFanout::replace(OutputInlet& output, OutputInlet& next) {
  std::lock_guard lock(mutex_);
  if (blocks_) next.set_blocks(*blocks_);
  replacements_.push_back({&output, &next});
  if (finished_) put_replacements();
}

void PacketFanout::put_replacements() {
  for (const auto& [output, next] : std::exchange(replacements_, {})) {
    std::ranges::replace(outputs_, output, next);
    output->leave();
    if (finished_) next->finish();
  }
}

void PacketFanout::set_blocks(bool blocks) {
  std::lock_guard lock(mutex_);
  blocks_ = blocks;
  for (OutputInlet* output : outputs_) output->set_blocks(blocks);
  for (const Replacement& replacement : replacements_) replacement.next->set_blocks(blocks);
}

void PacketFanout::lose(StreamKind stream, PacketDrop reason, std::uint64_t packets) {
  std::lock_guard lock(mutex_);
  for (OutputInlet* output : outputs_) output->lose(stream, reason, packets);
}

void PacketFanout::publish(const AVPacket& packet, StreamKind stream, const MediaFormatRef& format,
                           const std::stop_token& stop) {
  // Held while pushing as well, so that a group that is sent again does not mix with packets of
  // another thread. A push may wait for an output's thread, but that never takes this lock.
  std::lock_guard lock(mutex_);
  if (is_keyframe(packet, stream)) put_replacements();
  // A keyframe, and what another connection brings, needs no older group.
  const bool continues_group =
      group_complete_ && group_[0].format == format && !is_keyframe(packet, stream);
  for (OutputInlet* output : outputs_) {
    const bool resume = output->take_resume_request() && continues_group;
    if (resume && has_room_for_group(*output)) resend_group(*output, stop);
    output->push(packet, stream, format, stop);
  }
  cache(packet, stream, format);
}

void PacketFanout::end_group() {
  std::lock_guard lock(mutex_);
  forget_group();
}

void PacketFanout::finish() {
  std::lock_guard lock(mutex_);
  forget_group();
  finished_ = true;
  put_replacements();
  for (OutputInlet* output : outputs_) output->finish();
}

bool PacketFanout::has_room_for_group(const OutputInlet& output) const {
  std::size_t packets = 1;  // the one that follows
  for (std::size_t i = 0; i < group_size_; ++i) {
    packets += output.takes(group_[i].stream, *group_[i].format) ? 1 : 0;
  }
  return output.has_room(packets);
}

void PacketFanout::resend_group(OutputInlet& output, const std::stop_token& stop) {
  for (std::size_t i = 0; i < group_size_; ++i) {
    const MediaPacket& cached = group_[i];
    output.push(*cached.packet, cached.stream, cached.format, stop);
  }
}

void PacketFanout::cache(const AVPacket& packet, StreamKind stream, const MediaFormatRef& format) {
  if (stream == StreamKind::kVideo) {
    if (packet.flags & AV_PKT_FLAG_KEY) {
      forget_group();
      group_complete_ = true;
    } else if (group_complete_ && group_[0].format != format) {
      forget_group();  // the source was reopened in the middle of a group
    }
  }
  if (!group_complete_) return;
  const std::size_t bytes = static_cast<std::size_t>(packet.size);
  if (group_size_ == kMaxCachedPackets || group_bytes_ + bytes > kMaxCachedBytes) {
    forget_group();
    return;
  }
  if (group_size_ == group_.size()) group_.push_back({.packet = make_packet()});
  MediaPacket& slot = group_[group_size_];
  if (av_packet_ref(slot.packet.get(), &packet) < 0) throw std::bad_alloc();
  slot.stream = stream;
  slot.format = format;
  ++group_size_;
  group_bytes_ += bytes;
}

void PacketFanout::forget_group() {
  for (std::size_t i = 0; i < group_size_; ++i) {
    av_packet_unref(group_[i].packet.get());
    group_[i].format.reset();
  }
  group_size_ = 0;
  group_bytes_ = 0;
  group_complete_ = false;
}

}  // namespace framelane
