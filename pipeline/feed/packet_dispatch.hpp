#pragma once

#include <stop_token>
#include <vector>

#include "pipeline/av/av_ptr.hpp"
#include "pipeline/feed/encode_route.hpp"
#include "pipeline/source/source.hpp"

namespace framelane {

/// Hands the source's packets to the encodes that copy: video and audio as they come. Audio beside
/// an encoded video waits for the video's format (EarlyAudio). Source thread.
class PacketDispatch {
 public:
  /// `routes` outlives this. `cancel` ends waits for a full queue.
  PacketDispatch(std::vector<EncodeRoute>& routes, std::stop_token cancel);

  /// True if some encode copies the video, or the audio.
  bool copies_video() const { return copies_video_; }
  bool copies_audio() const { return copies_audio_; }

  /// Publishes a packet in every encode that copies its stream. Blocks as PacketFanout::publish
  /// does.
  void dispatch(const AVPacket& packet, StreamKind stream, const SourceInfo& source);
  /// Whether outputs that are full make their producers wait (OutputInlet::set_blocks).
  void set_blocks(bool blocks);
  /// The source is gone: audio that still waits for a video format is lost.
  void drop_early_audio();

 private:
  void dispatch_audio(EncodeRoute& route, const AVPacket& packet, const SourceInfo& source);
  void apply_media(const SourceInfo& source);

  std::vector<EncodeRoute>& routes_;
  const std::stop_token cancel_;
  const bool copies_video_;
  const bool copies_audio_;
};

}  // namespace framelane
