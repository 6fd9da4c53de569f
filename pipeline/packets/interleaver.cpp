#include "pipeline/packets/interleaver.hpp"

extern "C" {
#include <libavutil/mathematics.h>
}

#include <algorithm>
#include <utility>

namespace framelane {

std::int64_t packet_time_us(const AVPacket& packet, StreamKind stream, const MediaFormat& format) {
  const bool video = stream == StreamKind::kVideo;
  const AVRational base = video || !format.audio ? format.video.time_base : format.audio->time_base;
  const std::int64_t time = packet.dts != AV_NOPTS_VALUE ? packet.dts : packet.pts;
  return time == AV_NOPTS_VALUE ? 0 : av_rescale_q(time, base, AV_TIME_BASE_Q);
}

std::int64_t packet_time_us(const MediaPacket& packet) {
  return packet_time_us(*packet.packet, packet.stream, *packet.format);
}

std::int64_t frame_time_us(const AVPacket& video, const MediaFormat& format) {
  const std::int64_t time_us = frame_of(video);
  return time_us != FlightRecorder::kNoFrame ? time_us
                                             : packet_time_us(video, StreamKind::kVideo, format);
}

void Interleaver::add(MediaPacket& packet, bool has_audio) {
  if (packet.stream == StreamKind::kVideo) has_audio_ = has_audio;
  Lane& lane = streams_[packet.stream == StreamKind::kVideo ? 0 : 1];
  if (lane.count == lane.slots.size()) {
    std::rotate(lane.slots.begin(), lane.slots.begin() + static_cast<std::ptrdiff_t>(lane.first),
                lane.slots.end());
    lane.first = 0;
    lane.slots.resize(std::max<std::size_t>(2 * lane.slots.size(), 4));
    for (std::size_t i = lane.count; i < lane.slots.size(); ++i) {
      lane.slots[i].packet = make_packet();
    }
  }
  bytes_ += size_in_bytes(*packet.packet);
  std::swap(packet, lane.slots[(lane.first + lane.count) % lane.slots.size()]);
  ++lane.count;
}

bool Interleaver::next(MediaPacket& out, bool flush) {
  Lane& video = streams_[0];
  Lane& audio = streams_[1];
  if (video.count == 0 && audio.count == 0) return false;
  bool take_video = audio.count == 0;
  if (video.count > 0 && audio.count > 0) {
    take_video = packet_time_us(video.at(0)) <= packet_time_us(audio.at(0));
  } else if (!flush && size() < kMaxWaiting && bytes_ < PacketQueue::kMostBytes) {
    if (take_video && has_audio_ && waits_for_audio(video)) return false;
    if (!take_video && span_us(audio) < kAudioAheadUs) return false;
  }
  MediaPacket& taken = (take_video ? video : audio).take();
  std::swap(out, taken);
  bytes_ -= size_in_bytes(*out.packet);
  av_packet_unref(taken.packet.get());
  taken.format.reset();
  return true;
}

std::size_t Interleaver::clear(std::optional<StreamKind> of) {
  std::size_t forgotten = 0;
  for (Lane& lane : streams_) {
    while (lane.count > 0) {
      MediaPacket& packet = lane.take();
      if (packet.stream == of.value_or(packet.stream)) ++forgotten;
      av_packet_unref(packet.packet.get());
      packet.format.reset();
    }
  }
  bytes_ = 0;
  return forgotten;
}

MediaPacket& Interleaver::Lane::take() {
  MediaPacket& packet = slots[first];
  first = (first + 1) % slots.size();
  --count;
  return packet;
}

bool Interleaver::waits_for_audio(const Lane& video) {
  const std::int64_t ahead = span_us(video);
  if (ahead < kVideoAheadUs) return true;
  const auto came_in = video.at(video.count - 1).queued_at - video.at(0).queued_at;
  return ahead < kVideoAheadInBurstUs && came_in < kVideoComes;
}

std::int64_t Interleaver::span_us(const Lane& lane) {
  return packet_time_us(lane.at(lane.count - 1)) - packet_time_us(lane.at(0));
}

}  // namespace framelane
