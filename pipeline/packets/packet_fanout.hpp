#pragma once

#include <cstddef>
#include <mutex>
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

  /// OutputInlet::set_blocks of every output.
  void set_blocks(bool blocks);
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

  void cache(const AVPacket& packet, StreamKind stream, const MediaFormatRef& format);
  bool has_room_for_group(const OutputInlet& output) const;
  void resend_group(OutputInlet& output, const std::stop_token& stop);
  void forget_group();

  std::vector<OutputInlet*> outputs_;
  std::mutex mutex_;
  std::vector<MediaPacket> group_;  // the first group_size_ are in use; the others are spare
  std::size_t group_size_ = 0;
  std::size_t group_bytes_ = 0;
  bool group_complete_ = false;  // it starts at a keyframe and has every packet since
};

}  // namespace framelane
