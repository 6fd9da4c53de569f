#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <stop_token>
#include <vector>

#include "pipeline/packets/media.hpp"
#include "pipeline/packets/output_inlet.hpp"

namespace framelane {

/// Hands one encode's packets to its outputs. Caches the current group of pictures, so that an
/// output that starts (again) can do so at a keyframe without waiting for the next one. Any thread;
/// the source thread (sound) and an encode thread publish at once.
class PacketFanout {
 public:
  explicit PacketFanout(std::vector<OutputInlet*> outputs);

  // These block while a producer waits for an output that is full.

  /// From now on the output gets packets too; first those of the present group, if it has room.
  void add(OutputInlet& output);
  /// The output gets no more packets, and leaves.
  void remove(OutputInlet& output);
  /// At the next keyframe `output` leaves, and `next` takes its place: each packet is in one of
  /// them.
  void replace(OutputInlet& output, OutputInlet& next);
  /// OutputInlet::set_blocks of every output, also of those that come later.
  void set_blocks(bool blocks);
  /// OutputInlet::lose of every output.
  void lose(StreamKind stream, PacketDrop reason, std::uint64_t packets);

  /// Gives every output a reference to the packet. Blocks if an output is full and blocks then
  /// (OutputInlet::push).
  void publish(const AVPacket& packet, StreamKind stream, const MediaFormatRef& format,
               const std::stop_token& stop);
  /// The encoder is closed: the packets that follow do not refer to the current group.
  void end_group();
  /// The encode has ended: finishes every output.
  void finish();

 private:
  /// Larger groups are not cached: outputs that start then wait for the next keyframe.
  static constexpr std::size_t kMaxCachedPackets = 1024;
  static constexpr std::size_t kMaxCachedBytes = 64u << 20;

  void take_out(OutputInlet& output);
  void put_replacements();
  void cache(const AVPacket& packet, StreamKind stream, const MediaFormatRef& format);
  bool has_room_for_group(const OutputInlet& output) const;
  void resend_group(OutputInlet& output, const std::stop_token& stop);
  void forget_group();

  struct Replacement {
    OutputInlet* output;
    OutputInlet* next;
  };

  std::mutex mutex_;  // guards all that follows
  std::vector<OutputInlet*> outputs_;
  std::vector<Replacement> replacements_;  // due at the next keyframe
  std::optional<bool> blocks_;
  bool finished_ = false;
  std::vector<MediaPacket> group_;  // the first group_size_ are in use; the others are spare
  std::size_t group_size_ = 0;
  std::size_t group_bytes_ = 0;
  bool group_complete_ = false;  // it starts at a keyframe and has every packet since
};

}  // namespace framelane
