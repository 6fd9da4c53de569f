#pragma once

#include <cstddef>

#include "pipeline/output/playlist_writer.hpp"
#include "pipeline/output/rendition_group.hpp"
#include "pipeline/packets/packet_queue.hpp"

namespace framelane {

/// The rendition that one Output writes, see OutputOptions::master: where it can begin, and what
/// the master playlist has to say of it. Not thread-safe.
class OutputRendition {
 public:
  /// `index`: as RenditionGroup::add has returned it. `sound`: it is the sound of all others. The
  /// group must outlive it.
  OutputRendition(RenditionGroup& group, std::size_t index, bool sound)
      : group_(group), index_(index), sound_(sound) {}

  RenditionGroup& group() const { return group_; }
  std::size_t index() const { return index_; }

  /// True for a packet that is not to be written: it says where sound is cut.
  bool only_cuts(const MediaPacket& packet) const {
    return sound_ && packet.stream == StreamKind::kVideo;
  }
  /// True if the next stretch of its playlist can begin with this packet. Opens the playlist if the
  /// packet may be one: blocks and throws as PlaylistWriter::open does.
  bool begins(const MediaPacket& video, PlaylistWriter& playlist) const;
  /// Tells the master playlist what the rendition is from now on.
  void describe(const MediaPacket& keyframe);
  /// The source has nothing for it, until it is described. False if that is known already.
  bool leave_out();

 private:
  RenditionGroup& group_;
  const std::size_t index_;
  const bool sound_;
  bool left_out_ = false;
};

}  // namespace framelane
