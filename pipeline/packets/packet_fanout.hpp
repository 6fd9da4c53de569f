#pragma once

#include <memory>
#include <mutex>
#include <stop_token>
#include <vector>

#include "pipeline/packets/output_inlet.hpp"
#include "pipeline/packets/media.hpp"

namespace framelane {

/// Hands one encode's packets to its outputs and keeps the current group of pictures, so that an
/// output that (re)starts does so at a keyframe without waiting for the next one.
/// publish() may be called from the source thread and an encode thread at once.
class PacketFanout {
 public:
  explicit PacketFanout(std::vector<OutputInlet*> outputs);

  /// OutputInlet::set_blocks of every output.
  void set_blocks(bool blocks);
  /// Gives every output a reference to the packet. Blocks only where an output blocks when full.
  void publish(const AVPacket& packet, StreamKind stream, const MediaFormatRef& format,
               const std::stop_token& stop);
  /// The encode has ended: finishes every output.
  void finish();

 private:
  /// Larger groups are not kept: the outputs then wait for the next keyframe.
  static constexpr std::size_t kMaxCachedPackets = 1024;
  static constexpr std::size_t kMaxCachedBytes = 64u << 20;

  void cache(const AVPacket& packet, StreamKind stream, const MediaFormatRef& format);
  void resend_group(OutputInlet& output, const std::stop_token& stop);
  void forget_group();

  std::vector<OutputInlet*> outputs_;
  std::mutex mutex_;
  std::vector<MediaPacket> group_;  // slots are reused
  std::size_t group_size_ = 0;
  std::size_t group_bytes_ = 0;
  bool group_complete_ = false;  // starts at a keyframe and lacks nothing since
};

}  // namespace framelane
