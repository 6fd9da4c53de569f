#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/av/av_ptr.hpp"
#include "pipeline/packets/media.hpp"

namespace framelane::testing {

struct ClipPacket {
  PacketPtr packet;
  StreamKind stream = StreamKind::kVideo;
};

/// Packets of a short film in the order in which outputs get them: in decoding order, with audio
/// packets between the video packets.
struct Clip {
  MediaFormatRef format;
  std::vector<ClipPacket> packets;
};

struct ClipSpec {
  std::string video = "libx264";
  int width = 64;
  int height = 48;
  int frames = 50;
  int rate = 25;
  int gop = 10;
  int b_frames = 0;
  std::string audio = {};  ///< an encoder's name; empty: none
  std::int64_t start = 0;  ///< dts of the first frame, in frames
  bool global_header = true;
};

Clip encode_clip(const ClipSpec& spec);

/// A copy of `clip` with a format object of its own and all timestamps later by `frames` video
/// frames.
Clip later(const Clip& clip, std::int64_t frames);

/// The video packets of a file as its demuxer gives them.
Clip demux_clip(const std::string& path);

}  // namespace framelane::testing
