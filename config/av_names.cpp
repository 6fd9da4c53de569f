#include "config/av_names.hpp"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/opt.h>
}

#include <algorithm>
#include <array>
#include <cstddef>

#include "pipeline/av/av_error.hpp"
#include "pipeline/av/av_log_capture.hpp"
#include "pipeline/av/av_ptr.hpp"
#include "pipeline/av/device_formats.hpp"
#include "pipeline/base/av_option.hpp"
#include "pipeline/base/url.hpp"
#include "pipeline/output/container.hpp"
#include "pipeline/output/hls_options.hpp"
#include "pipeline/packets/media.hpp"
#include "pipeline/source/input_options.hpp"

namespace framelane {
namespace {

/// Adds each name of a list such as "mov,mp4,m4a".
void add_each(const char* names, AvNames& list) {
  std::string_view rest = names;
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    list.push_back(rest.substr(0, comma));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
}

/// Adds the options of a class, without those of its child classes. Null adds nothing.
void add_options(const AVClass* options, AvNames& list) {
  if (options == nullptr) return;
  const AVOption* option = nullptr;
  while ((option = av_opt_next(&options, option)) != nullptr) {
    if (option->type != AV_OPT_TYPE_CONST) list.emplace_back(option->name);
  }
}

void add_protocol_options(bool output, AvNames& list) {
  void* position = nullptr;
  while (const char* name = avio_enum_protocols(&position, output ? 1 : 0)) {
    add_options(avio_protocol_get_class(name), list);
  }
}

template <typename Visit>
void for_each_codec(int (*is_kind)(const AVCodec*), StreamKind kind, Visit visit) {
  const AVMediaType type = kind == StreamKind::kVideo ? AVMEDIA_TYPE_VIDEO : AVMEDIA_TYPE_AUDIO;
  void* position = nullptr;
  while (const AVCodec* codec = av_codec_iterate(&position)) {
    if (codec->type == type && is_kind(codec) != 0) visit(*codec);
  }
}

}  // namespace

AvNames encoder_names(StreamKind kind) {
  AvNames names;
  for_each_codec(av_codec_is_encoder, kind,
                 [&](const AVCodec& codec) { names.emplace_back(codec.name); });
  return names;
}

AvNames encoder_names_for(const std::string& codec, StreamKind kind) {
  AvNames names;
  const AVCodecDescriptor* descriptor = avcodec_descriptor_get_by_name(codec.c_str());
  if (descriptor == nullptr) return names;
  for_each_codec(av_codec_is_encoder, kind, [&](const AVCodec& encoder) {
    if (encoder.id == descriptor->id) names.emplace_back(encoder.name);
  });
  return names;
}

AvNames decoder_names() {
  AvNames names;
  void* position = nullptr;
  while (const AVCodec* codec = av_codec_iterate(&position)) {
    if (av_codec_is_decoder(codec) != 0) names.emplace_back(codec->name);
  }
  return names;
}

AvNames muxer_names() {
  AvNames names;
  void* position = nullptr;
  while (const AVOutputFormat* muxer = av_muxer_iterate(&position)) add_each(muxer->name, names);
  return names;
}

AvNames demuxer_names() {
  AvNames names;
  for (const DeviceFormat& device : kDeviceFormats) names.push_back(device.name);
  void* position = nullptr;
  while (const AVInputFormat* demuxer = av_demuxer_iterate(&position)) {
    add_each(demuxer->name, names);
  }
  return names;
}

AvNames scheme_names(bool output) {
  // These are muxers, demuxers and devices, but URLs name them as if they were protocols.
  AvNames names{"rtsp", "rtsps"};
  if (output) {
    names.emplace_back("null");
  } else {
    names.emplace_back("satip");
    for (const DeviceFormat& device : kDeviceFormats) {
      if (device.is_scheme) names.push_back(device.name);
    }
  }
  void* position = nullptr;
  while (const char* name = avio_enum_protocols(&position, output ? 1 : 0))
    names.emplace_back(name);
  return names;
}

PeerAddress peer_address(const std::string& url) {
  PeerAddress peer{std::string(url.size() + 1, '\0'), -1};
  av_url_split(nullptr, 0, nullptr, 0, peer.host.data(), static_cast<int>(peer.host.size()),
               &peer.port, nullptr, 0, url.c_str());
  peer.host.resize(peer.host.find('\0'));
  return peer;
}

bool is_optional_encoder(std::string_view name, StreamKind kind) {
  struct Optional {
    std::vector<std::string_view> libraries;
    std::vector<std::string_view> codecs, apis;  // CODEC_API: only for certain hardware or systems
  };
  static const Optional video{
      .libraries = {"libx264", "libx264rgb", "libx265", "libopenh264", "libkvazaar", "libaom-av1",
                    "libsvtav1", "librav1e", "libvpx", "libvpx-vp9", "libxvid", "libtheora",
                    "libwebp"},
      .codecs = {"h264", "hevc", "av1", "vp8", "vp9", "mjpeg", "mpeg2", "mpeg4"},
      .apis = {"nvenc", "vaapi", "qsv", "amf", "v4l2m2m", "vulkan", "rkmpp", "omx", "mediacodec",
               "mf"}};
  static const Optional audio{.libraries = {"libopus", "libmp3lame", "libfdk_aac", "libvorbis",
                                            "libshine", "libtwolame", "libspeex"},
                              .codecs = {"aac", "ac3", "mp3", "alac"},
                              .apis = {"at", "mf"}};
  const auto has = [](const std::vector<std::string_view>& list, std::string_view word) {
    return std::ranges::find(list, word) != list.end();
  };
  const Optional& optional = kind == StreamKind::kVideo ? video : audio;
  if (has(optional.libraries, name)) return true;
  const std::size_t underscore = name.find('_');
  return underscore != std::string_view::npos && has(optional.codecs, name.substr(0, underscore)) &&
         has(optional.apis, name.substr(underscore + 1));
}

bool holds_audio_of(const std::string& encoder, const Container& container) {
  const AVCodec* codec = avcodec_find_encoder_by_name(encoder.c_str());
  return codec == nullptr || holds_audio(container, codec->id);
}

std::optional<std::string> why_no_video_of(const std::string& encoder, const Container& container) {
  const AVCodec* codec = avcodec_find_encoder_by_name(encoder.c_str());
  return codec == nullptr ? std::nullopt : why_no_video(container, codec->id);
}

AvNames encoder_option_names(const std::string& encoder) {
  AvNames names;
  add_options(avcodec_get_class(), names);
  const AVCodec* codec = avcodec_find_encoder_by_name(encoder.c_str());
  if (codec != nullptr) add_options(codec->priv_class, names);
  return names;
}

AvNames output_option_names(const Container& container) {
  AvNames names;
  add_options(avformat_get_class(), names);
  if (container.muxer != nullptr) add_options(container.muxer->priv_class, names);
  if (container.kind == OutputKind::kPlaylist) {
    names.insert(names.end(), kHlsOptionNames.begin(), kHlsOptionNames.end());
  } else if (container.kind == OutputKind::kFile) {
    add_options(avio_protocol_get_class("file"), names);
  } else {
    // A protocol passes options on to the protocol below it: HLS to HTTPS, HTTPS to TCP.
    add_protocol_options(true, names);
  }
  return names;
}

AvNames input_option_names(const InputOptions& input) {
  const std::string scheme = url_scheme(input.url);
  const bool device = device_of_scheme(scheme) != nullptr ||
                      device_format(input.format) != nullptr || names_v4l2_device(input.url);
  AvNames names;
  if (device) return names;
  add_options(avformat_get_class(), names);
  add_options(avcodec_get_class(), names);
  add_protocol_options(false, names);
  void* position = nullptr;
  while (const AVInputFormat* demuxer = av_demuxer_iterate(&position)) {
    add_options(demuxer->priv_class, names);
  }
  for_each_codec(av_codec_is_decoder, StreamKind::kVideo,
                 [&](const AVCodec& codec) { add_options(codec.priv_class, names); });
  return names;
}

std::optional<std::string> why_value_refused(const std::string& encoder, const AvOption& option) {
  const AVCodec* codec = avcodec_find_encoder_by_name(encoder.c_str());
  const CodecContextPtr context(codec != nullptr ? avcodec_alloc_context3(codec) : nullptr);
  if (!context) return std::nullopt;
  const AvLogCapture log;
  const int error =
      av_opt_set(context.get(), option.key.c_str(), option.value.c_str(), AV_OPT_SEARCH_CHILDREN);
  if (error >= 0 || error == AVERROR_OPTION_NOT_FOUND) return std::nullopt;
  return log.reason(av_error_text(error));
}

}  // namespace framelane
