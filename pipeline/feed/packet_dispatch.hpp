#pragma once

#include <atomic>
#include <stop_token>
#include <vector>

#include "pipeline/av/av_ptr.hpp"
#include "pipeline/base/labels.hpp"
#include "pipeline/feed/encode_route.hpp"
#include "pipeline/feed/run_changes.hpp"
#include "pipeline/packets/media.hpp"

namespace framelane {

/// Hands the source's packets to the encodes that copy, video and audio as they come, and audio to
/// those that transcode it (AudioEncode). Audio beside an encoded video waits for the video's
/// format (EarlyAudio). Source thread.
class PacketDispatch {
 public:
  /// The routes and the reference outlive this. `cancel` ends waits for a full queue.
  PacketDispatch(std::vector<EncodeRoute*> routes, std::stop_token cancel,
                 const std::atomic<DropReason>& cancel_reason);

  /// True if some encode copies the video.
  bool copies_video() const;
  /// True if some encode copies or transcodes the audio.
  bool wants_audio() const;

  /// Takes over which encodes there are. One that is removed gets the rest of its sound, and, if it
  /// copies, ends. Throws as AudioEncode::finish does.
  void change(const RunChanges::Change& change);

  /// The packets and frames that follow belong to these streams, or, with null, to none that has
  /// packets. Frames too: the format of their packets names the audio beside them. Throws as
  /// AudioEncode::set_source does.
  void set_source(const MediaFormatRef& source);
  /// Publishes a packet of the source in every encode that copies its stream, and what its audio is
  /// transcoded to. Blocks as PacketFanout::publish does. Throws as AudioEncode::send does.
  void dispatch(const AVPacket& packet, StreamKind stream, const MediaFormat& source);
  /// Whether outputs that are full make their producers wait (OutputInlet::set_blocks).
  void set_blocks(bool blocks);
  /// Whether the source is live (AudioEncode::set_live).
  void set_live(bool live);
  /// The source has ended: transcodes and publishes the rest of its audio, or, after a cancel,
  /// drops it. Throws as AudioEncode::finish does.
  void finish_audio();
  /// The source is gone: audio that still waits for a video format is lost.
  void drop_early_audio();
  /// Nothing more comes: ends the encodes that copy.
  void finish();

 private:
  void finish_audio(EncodeRoute& route);
  void publish_audio(EncodeRoute& route, const AVPacket& packet, const MediaFormat* source);
  void publish_transcoded(EncodeRoute& route);

  std::vector<EncodeRoute*> routes_;
  const std::stop_token cancel_;
  const std::atomic<DropReason>& cancel_reason_;
};

}  // namespace framelane
