#include "pipeline/output/output_rendition.hpp"

#include <utility>

#include "pipeline/output/codec_name.hpp"
#include "pipeline/output/master_playlist.hpp"
#include "pipeline/output/picture_time.hpp"

namespace framelane {

bool OutputRendition::begins(const MediaPacket& video, PlaylistWriter& playlist) const {
  if (!is_keyframe(*video.packet, StreamKind::kVideo) || !group_.begins_slot(video)) return false;
  playlist.open();
  return playlist.begin_rendition(group_.slot_at(shown_at(video)));
}

void OutputRendition::describe(const MediaPacket& keyframe) {
  HlsVariant variant;
  if (sound_) {
    variant.codecs = codec_name(*keyframe.format->audio->parameters, nullptr);
  } else {
    const StreamFormat& video = keyframe.format->video;
    variant.codecs = codec_name(*video.parameters, keyframe.packet.get());
    variant.width = video.parameters->width;
    variant.height = video.parameters->height;
    variant.frame_rate = video.frame_rate;
  }
  group_.describe(index_, std::move(variant));
  left_out_ = false;
}

bool OutputRendition::leave_out() {
  if (std::exchange(left_out_, true)) return false;
  group_.leave_out(index_);
  return true;
}

}  // namespace framelane
