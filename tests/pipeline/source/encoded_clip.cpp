#include "tests/pipeline/source/encoded_clip.hpp"

#include <memory>
#include <stdexcept>
#include <utility>

extern "C" {
#include <libavformat/avformat.h>
#include <libavutil/channel_layout.h>
#include <libavutil/opt.h>
}

#include "pipeline/av/av_error.hpp"

namespace framelane::testing {
namespace {

void check_clip(int error, const char* what) {
  if (error < 0) throw std::runtime_error(std::string(what) + ": " + av_error_text(error));
}

StreamFormat stream_format(const AVCodecContext& context) {
  StreamFormat format;
  format.parameters.reset(avcodec_parameters_alloc());
  check_clip(avcodec_parameters_from_context(format.parameters.get(), &context), "parameters");
  format.time_base = context.time_base;
  format.frame_rate = context.framerate;
  return format;
}

void receive_all(AVCodecContext& context, StreamKind stream, std::int64_t offset,
                 std::vector<ClipPacket>& to) {
  for (;;) {
    PacketPtr packet = make_packet();
    if (avcodec_receive_packet(&context, packet.get()) < 0) return;
    packet->pts += offset;
    packet->dts += offset;
    to.push_back({std::move(packet), stream});
  }
}

// The first pixel format that an encoder takes. `AVCodec::pix_fmts` is deprecated since
// FFmpeg 7.1.
AVPixelFormat first_pixel_format(const AVCodec& codec) {
  const AVPixelFormat* formats = nullptr;
#if LIBAVCODEC_VERSION_INT >= AV_VERSION_INT(61, 13, 100)
  const void* list = nullptr;
  check_clip(
      avcodec_get_supported_config(nullptr, &codec, AV_CODEC_CONFIG_PIX_FORMAT, 0, &list, nullptr),
      "list pixel formats");
  formats = static_cast<const AVPixelFormat*>(list);
#else
  formats = codec.pix_fmts;
#endif
  return formats ? formats[0] : AV_PIX_FMT_YUV420P;
}

// The first sample format that an encoder takes.
AVSampleFormat first_sample_format(const AVCodec& codec) {
  const AVSampleFormat* formats = nullptr;
#if LIBAVCODEC_VERSION_INT >= AV_VERSION_INT(61, 13, 100)
  const void* list = nullptr;
  check_clip(avcodec_get_supported_config(nullptr, &codec, AV_CODEC_CONFIG_SAMPLE_FORMAT, 0, &list,
                                          nullptr),
             "list sample formats");
  formats = static_cast<const AVSampleFormat*>(list);
#else
  formats = codec.sample_fmts;
#endif
  if (!formats) throw std::runtime_error("no sample formats");
  return formats[0];
}

StreamFormat encode_video(const ClipSpec& spec, std::vector<ClipPacket>& to) {
  const AVCodec* codec = avcodec_find_encoder_by_name(spec.video.c_str());
  if (!codec) throw std::runtime_error("no encoder " + spec.video);
  const CodecContextPtr context(avcodec_alloc_context3(codec));
  context->width = spec.width;
  context->height = spec.height;
  context->pix_fmt = first_pixel_format(*codec);
  context->time_base = {1, spec.rate};
  context->framerate = {spec.rate, 1};
  context->gop_size = spec.gop;
  context->max_b_frames = spec.b_frames;
  if (spec.global_header) context->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
  av_opt_set(context->priv_data, "preset", "ultrafast", 0);
  av_opt_set_int(context->priv_data, "sc_threshold", 0, 0);
  check_clip(avcodec_open2(context.get(), codec, nullptr), "open video encoder");
  const FramePtr frame = make_frame();
  frame->format = context->pix_fmt;
  frame->width = spec.width;
  frame->height = spec.height;
  for (int i = 0; i < spec.frames; ++i) {
    av_frame_unref(frame.get());
    frame->format = context->pix_fmt;
    frame->width = spec.width;
    frame->height = spec.height;
    check_clip(av_frame_get_buffer(frame.get(), 0), "frame");
    for (int plane = 0; plane < 4 && frame->buf[plane]; ++plane) {
      std::uint8_t* const bytes = frame->buf[plane]->data;
      const std::size_t size = frame->buf[plane]->size;
      for (std::size_t b = 0; b < size; ++b) {
        bytes[b] = static_cast<std::uint8_t>(b * 7 + static_cast<unsigned>(i) * 5);
      }
    }
    frame->pts = i;
    check_clip(avcodec_send_frame(context.get(), frame.get()), "send frame");
    receive_all(*context, StreamKind::kVideo, spec.start, to);
  }
  avcodec_send_frame(context.get(), nullptr);
  receive_all(*context, StreamKind::kVideo, spec.start, to);
  return stream_format(*context);
}

StreamFormat encode_audio(const ClipSpec& spec, std::vector<ClipPacket>& to) {
  const AVCodec* codec = avcodec_find_encoder_by_name(spec.audio.c_str());
  if (!codec) throw std::runtime_error("no encoder " + spec.audio);
  const CodecContextPtr context(avcodec_alloc_context3(codec));
  context->sample_rate = codec->id == AV_CODEC_ID_PCM_ALAW ? 8000 : 48000;
  context->sample_fmt = first_sample_format(*codec);
  av_channel_layout_default(&context->ch_layout, 1);
  context->time_base = {1, context->sample_rate};
  context->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
  check_clip(avcodec_open2(context.get(), codec, nullptr), "open audio encoder");
  const int size = context->frame_size > 0 ? context->frame_size : 160;
  const std::int64_t start = spec.start * context->sample_rate / spec.rate;
  const std::int64_t samples =
      static_cast<std::int64_t>(spec.frames) * context->sample_rate / spec.rate;
  for (std::int64_t at = 0; at < samples; at += size) {
    const FramePtr frame = make_frame();
    frame->format = context->sample_fmt;
    frame->nb_samples = size;
    frame->sample_rate = context->sample_rate;
    check_clip(av_channel_layout_copy(&frame->ch_layout, &context->ch_layout), "layout");
    check_clip(av_frame_get_buffer(frame.get(), 0), "audio frame");
    std::fill_n(frame->data[0], frame->linesize[0], std::uint8_t{0});
    frame->pts = at;
    check_clip(avcodec_send_frame(context.get(), frame.get()), "send audio");
    receive_all(*context, StreamKind::kAudio, start, to);
  }
  avcodec_send_frame(context.get(), nullptr);
  receive_all(*context, StreamKind::kAudio, start, to);
  return stream_format(*context);
}

}  // namespace

Clip encode_clip(const ClipSpec& spec) {
  av_log_set_level(AV_LOG_ERROR);  // libx264 logs much
  auto format = std::make_shared<MediaFormat>();
  std::vector<ClipPacket> video;
  std::vector<ClipPacket> audio;
  format->video = encode_video(spec, video);
  if (!spec.audio.empty()) format->audio = encode_audio(spec, audio);
  Clip clip;
  auto v = video.begin();
  auto a = audio.begin();
  while (v != video.end() || a != audio.end()) {
    const bool take_video =
        a == audio.end() ||
        (v != video.end() && av_compare_ts(v->packet->dts, format->video.time_base, a->packet->dts,
                                           format->audio->time_base) <= 0);
    clip.packets.push_back(std::move(take_video ? *v++ : *a++));
  }
  clip.format = std::move(format);
  return clip;
}

Clip later(const Clip& clip, std::int64_t frames) {
  auto format = std::make_shared<MediaFormat>();
  format->video.parameters = copy_parameters(*clip.format->video.parameters);
  format->video.time_base = clip.format->video.time_base;
  format->video.frame_rate = clip.format->video.frame_rate;
  Clip moved;
  moved.format = std::move(format);
  for (const ClipPacket& from : clip.packets) {
    PacketPtr packet(av_packet_clone(from.packet.get()));
    packet->pts += frames;
    packet->dts += frames;
    moved.packets.push_back({std::move(packet), from.stream});
  }
  return moved;
}

Clip demux_clip(const std::string& path) {
  AVFormatContext* context = nullptr;
  check_clip(avformat_open_input(&context, path.c_str(), nullptr, nullptr), "open clip");
  const std::unique_ptr<AVFormatContext, void (*)(AVFormatContext*)> owner(
      context, [](AVFormatContext* c) { avformat_close_input(&c); });
  check_clip(avformat_find_stream_info(context, nullptr), "probe clip");
  const int index = av_find_best_stream(context, AVMEDIA_TYPE_VIDEO, -1, -1, nullptr, 0);
  check_clip(index, "find video");
  const AVStream& stream = *context->streams[index];
  auto format = std::make_shared<MediaFormat>();
  format->video = {copy_parameters(*stream.codecpar), stream.time_base, stream.avg_frame_rate};
  Clip clip;
  clip.format = std::move(format);
  for (PacketPtr packet = make_packet(); av_read_frame(context, packet.get()) >= 0;
       packet = make_packet()) {
    if (packet->stream_index == index) {
      clip.packets.push_back({std::move(packet), StreamKind::kVideo});
    }
  }
  return clip;
}

}  // namespace framelane::testing
