#include "pipeline/feed/packet_dispatch.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "pipeline/encode/encode_options.hpp"

namespace framelane {
namespace {

MediaFormatRef copied_media(const MediaFormat& source, const StreamFormat* audio) {
  auto media = std::make_shared<MediaFormat>();
  media->video = {copy_parameters(*source.video.parameters), source.video.time_base,
                  source.video.frame_rate};
  if (audio != nullptr) {
    media->audio = StreamFormat{copy_parameters(*audio->parameters), audio->time_base, {0, 1}};
  }
  return media;
}

}  // namespace

PacketDispatch::PacketDispatch(std::vector<EncodeRoute*> routes, std::stop_token cancel,
                               const std::atomic<DropReason>& cancel_reason)
    : routes_(std::move(routes)), cancel_(std::move(cancel)), cancel_reason_(cancel_reason) {}

bool PacketDispatch::copies_video() const {
  return std::ranges::any_of(routes_,
                             [](const EncodeRoute* route) { return route->options->copy_video; });
}

bool PacketDispatch::wants_audio() const {
  return std::ranges::any_of(
      routes_, [](const EncodeRoute* route) { return route->options->wants_audio(); });
}

void PacketDispatch::change(const RunChanges::Change& change) {
  for (EncodeRoute* const route : change.removed) {
    finish_audio(*route);
    route->early_audio.drop();
    if (route->options->copy_video) route->fanout->finish();
    std::erase(routes_, route);
  }
  routes_.insert(routes_.end(), change.added.begin(), change.added.end());
}

void PacketDispatch::dispatch(const AVPacket& packet, StreamKind stream,
                              const MediaFormat& source) {
  for (EncodeRoute* const route : routes_) {
    if (stream == StreamKind::kVideo) {
      if (!route->options->copy_video) continue;
      route->fanout->publish(packet, StreamKind::kVideo, route->media, cancel_);
    } else if (route->audio) {
      route->audio->send(packet);
      publish_transcoded(*route);
    } else if (route->options->copy_audio) {
      publish_audio(*route, packet, &source);
    }
  }
}

void PacketDispatch::publish_audio(EncodeRoute& route, const AVPacket& packet,
                                   const MediaFormat* source) {
  if (route.down()) return route.early_audio.lose();
  // After a reconnect the audio may differ from what `media` says, until a frame is decoded.
  const bool known =
      route.media != nullptr && same_audio(audio_of(route.media.get()), route.audio_format(source));
  if (!known) return route.early_audio.hold(packet);
  route.fanout->publish(packet, StreamKind::kAudio, route.media, cancel_);
}

void PacketDispatch::publish_transcoded(EncodeRoute& route) {
  while (const AVPacket* packet = route.audio->receive()) publish_audio(route, *packet, nullptr);
}

void PacketDispatch::set_source(const MediaFormatRef& source) {
  for (EncodeRoute* const route : routes_) {
    if (route->audio) route->audio->set_source(source);
    if (!route->options->copy_video) continue;
    const StreamFormat* audio = route->audio_format(source.get());
    const bool same = route->source_media == source && route->media != nullptr &&
                      same_audio(audio, audio_of(route->media.get()));
    if (same) continue;
    route->source_media = source;
    // A new object even if a camera comes back with the same streams: outputs go on in the same
    // file, but only from a keyframe on.
    route->set_media(copied_media(*source, audio), cancel_);
  }
}

void PacketDispatch::set_blocks(bool blocks) {
  for (EncodeRoute* const route : routes_) route->fanout->set_blocks(blocks);
}

void PacketDispatch::set_live(bool live) {
  for (EncodeRoute* const route : routes_) {
    if (route->audio) route->audio->set_live(live);
  }
}

void PacketDispatch::finish_audio() {
  for (EncodeRoute* const route : routes_) finish_audio(*route);
}

void PacketDispatch::finish_audio(EncodeRoute& route) {
  if (!route.audio) return;
  if (cancel_.stop_requested()) {
    route.audio->drop(audio_drop(cancel_reason_));
  } else {
    route.audio->finish();
    publish_transcoded(route);
  }
}

void PacketDispatch::drop_early_audio() {
  for (EncodeRoute* const route : routes_) route->early_audio.drop();
}

void PacketDispatch::finish() {
  for (EncodeRoute* const route : routes_) {
    if (route->options->copy_video) route->fanout->finish();
  }
}

}  // namespace framelane
