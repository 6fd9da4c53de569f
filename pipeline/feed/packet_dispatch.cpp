#include "pipeline/feed/packet_dispatch.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "pipeline/encode/encode_options.hpp"

namespace framelane {
namespace {

bool any_route(const std::vector<EncodeRoute>& routes, bool EncodeOptions::*copies) {
  return std::ranges::any_of(routes,
                             [copies](const EncodeRoute& route) { return route.options->*copies; });
}

MediaFormatRef copied_media(const MediaFormat& source, bool audio) {
  auto media = std::make_shared<MediaFormat>();
  media->video = {copy_parameters(*source.video.parameters), source.video.time_base,
                  source.video.frame_rate};
  if (audio && source.audio) {
    media->audio =
        StreamFormat{copy_parameters(*source.audio->parameters), source.audio->time_base, {0, 1}};
  }
  return media;
}

}  // namespace

PacketDispatch::PacketDispatch(std::vector<EncodeRoute>& routes, std::stop_token cancel)
    : routes_(routes),
      cancel_(std::move(cancel)),
      copies_video_(any_route(routes, &EncodeOptions::copy_video)),
      copies_audio_(any_route(routes, &EncodeOptions::copy_audio)) {}

void PacketDispatch::dispatch(const AVPacket& packet, StreamKind stream, const SourceInfo& source) {
  apply_media(source);
  for (EncodeRoute& route : routes_) {
    if (stream == StreamKind::kAudio) {
      if (route.options->copy_audio) dispatch_audio(route, packet, source);
    } else if (route.options->copy_video) {
      route.fanout->publish(packet, StreamKind::kVideo, route.media, cancel_);
    }
  }
}

void PacketDispatch::dispatch_audio(EncodeRoute& route, const AVPacket& packet,
                                    const SourceInfo& source) {
  // After a reconnect the audio may differ from what `media` says, until a frame is decoded.
  const bool known =
      route.media != nullptr && (route.source_media == source.media ||
                                 same_audio(route.source_media.get(), source.media.get()));
  if (!known) return route.early_audio.hold(packet);
  route.source_media = source.media;
  route.fanout->publish(packet, StreamKind::kAudio, route.media, cancel_);
}

void PacketDispatch::apply_media(const SourceInfo& source) {
  for (EncodeRoute& route : routes_) {
    if (!route.options->copy_video || route.source_media == source.media) continue;
    route.source_media = source.media;
    // A new object even if a camera comes back with the same streams: outputs go on in the same
    // file, but only from a keyframe on.
    route.set_media(copied_media(*source.media, route.options->copy_audio), cancel_);
  }
}

void PacketDispatch::set_blocks(bool blocks) {
  for (EncodeRoute& route : routes_) route.fanout->set_blocks(blocks);
}

void PacketDispatch::drop_early_audio() {
  for (EncodeRoute& route : routes_) route.early_audio.drop();
}

}  // namespace framelane
