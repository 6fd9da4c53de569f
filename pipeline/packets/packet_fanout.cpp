#include "pipeline/packets/packet_fanout.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "pipeline/packets/interleaver.hpp"

namespace framelane {

PacketFanout::PacketFanout(std::vector<OutputInlet*> outputs, std::shared_ptr<SnapshotTap> tap,
                           bool copied)
    : tap_(std::move(tap)), copied_(copied), outputs_(std::move(outputs)) {}

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
  std::erase_if(handovers_, [&](const Handover& handover) {
    const bool ends = handover.output == &output || handover.next == &output;
    if (ends && handover.output != &output) handover.output->leave();
    return ends;
  });
  std::erase(outputs_, &output);
  output.leave();
}

void PacketFanout::replace(OutputInlet& output, OutputInlet& next) {
  std::lock_guard lock(mutex_);
  if (blocks_) next.set_blocks(*blocks_);
  const auto waiting = std::ranges::find(replacements_, &output, &Replacement::next);
  if (waiting != replacements_.end()) {  // it has not begun, and need not any more
    waiting->next = &next;
    output.leave();
    return;
  }
  replacements_.push_back({&output, &next});
  if (finished_) put_replacements(std::nullopt);
}

void PacketFanout::put_replacements(std::optional<std::int64_t> keyframe_us) {
  for (const auto& [output, next] : std::exchange(replacements_, {})) {
    std::ranges::replace(outputs_, output, next);
    if (!keyframe_us) {
      output->leave();
      next->finish();
      continue;
    }
    const auto begun = std::ranges::find(handovers_, output, &Handover::next);
    if (begun != handovers_.end() && begun->begin_us == *keyframe_us) {  // it has not begun itself
      begun->next = next;
      output->leave();
    } else {
      handovers_.push_back({output, next, *keyframe_us});
      output->hand_over();
    }
  }
}

void PacketFanout::end_handovers(StreamKind stream, std::int64_t time_us) {
  std::erase_if(handovers_, [&](const Handover& handover) {
    const std::int64_t last_us =
        handover.begin_us + (stream == StreamKind::kAudio ? 0 : kLateSoundUs);
    if (time_us < last_us) return false;
    handover.output->leave();
    return true;
  });
}

void PacketFanout::set_blocks(bool blocks) {
  std::lock_guard lock(mutex_);
  blocks_ = blocks;
  for (OutputInlet* output : outputs_) output->set_blocks(blocks);
  for (const Replacement& replacement : replacements_) replacement.next->set_blocks(blocks);
  for (const Handover& handover : handovers_) handover.output->set_blocks(blocks);
}

void PacketFanout::lose(StreamKind stream, PacketDrop reason, std::uint64_t packets) {
  std::lock_guard lock(mutex_);
  for (OutputInlet* output : outputs_) output->lose(stream, reason, packets);
}

void PacketFanout::publish(const AVPacket& packet, StreamKind stream, const MediaFormatRef& format,
                           const std::stop_token& stop) {
  if (tap_ && is_keyframe(packet, stream)) {
    tap_->keep(packet, format, copied_, frame_time_us(packet, *format));
  }
  // Held while pushing as well, so that a group that is sent again does not mix with packets of
  // another thread. A push may wait for an output's thread, but that never takes this lock.
  std::lock_guard lock(mutex_);
  const std::int64_t time_us = packet_time_us(packet, stream, *format);
  end_handovers(stream, time_us);
  if (is_keyframe(packet, stream) && !replacements_.empty()) {
    put_replacements(time_us);
    if (!format->audio) end_handovers(StreamKind::kAudio, time_us);
  }
  // A keyframe, and what another connection brings, needs no older group.
  const bool continues_group =
      group_complete_ && group_[0].format == format && !is_keyframe(packet, stream);
  for (OutputInlet* output : outputs_) {
    const bool resume = output->take_resume_request() && continues_group;
    if (resume && has_room_for_group(*output)) resend_group(*output, stop);
    const auto handover = std::ranges::find(handovers_, output, &Handover::next);
    const bool is_late = stream == StreamKind::kAudio && handover != handovers_.end();
    (is_late ? handover->output : output)->push(packet, stream, format, stop);
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
  for (const Handover& handover : std::exchange(handovers_, {})) handover.output->leave();
  put_replacements(std::nullopt);
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
