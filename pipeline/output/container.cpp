#include "pipeline/output/container.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>

#include "pipeline/base/failure.hpp"
#include "pipeline/base/redact.hpp"
#include "pipeline/base/url.hpp"

namespace framelane {
namespace {

constexpr std::array kMp4Audio{AV_CODEC_ID_AAC,  AV_CODEC_ID_MP3,  AV_CODEC_ID_AC3,
                               AV_CODEC_ID_EAC3, AV_CODEC_ID_ALAC, AV_CODEC_ID_FLAC,
                               AV_CODEC_ID_OPUS};
constexpr std::array kMovAudio{AV_CODEC_ID_AAC,       AV_CODEC_ID_MP3,       AV_CODEC_ID_AC3,
                               AV_CODEC_ID_EAC3,      AV_CODEC_ID_ALAC,      AV_CODEC_ID_PCM_ALAW,
                               AV_CODEC_ID_PCM_MULAW, AV_CODEC_ID_PCM_S16LE, AV_CODEC_ID_PCM_S16BE,
                               AV_CODEC_ID_PCM_S24LE};
constexpr std::array k3gpAudio{AV_CODEC_ID_AAC, AV_CODEC_ID_AMR_NB, AV_CODEC_ID_AMR_WB};
constexpr std::array kTsAudio{AV_CODEC_ID_AAC, AV_CODEC_ID_MP2, AV_CODEC_ID_MP3, AV_CODEC_ID_AC3,
                              AV_CODEC_ID_EAC3};
constexpr std::array kMatroskaAudio{
    AV_CODEC_ID_AAC,       AV_CODEC_ID_MP2,       AV_CODEC_ID_MP3,       AV_CODEC_ID_AC3,
    AV_CODEC_ID_EAC3,      AV_CODEC_ID_DTS,       AV_CODEC_ID_TRUEHD,    AV_CODEC_ID_ALAC,
    AV_CODEC_ID_FLAC,      AV_CODEC_ID_OPUS,      AV_CODEC_ID_VORBIS,    AV_CODEC_ID_PCM_ALAW,
    AV_CODEC_ID_PCM_MULAW, AV_CODEC_ID_PCM_S16LE, AV_CODEC_ID_PCM_S16BE, AV_CODEC_ID_PCM_S24LE};
constexpr std::array kWebmAudio{AV_CODEC_ID_OPUS, AV_CODEC_ID_VORBIS};
constexpr std::array kOggAudio{AV_CODEC_ID_OPUS, AV_CODEC_ID_VORBIS, AV_CODEC_ID_FLAC};
constexpr std::array kFlvAudio{AV_CODEC_ID_AAC, AV_CODEC_ID_MP3};
constexpr std::array kAviAudio{AV_CODEC_ID_MP2,       AV_CODEC_ID_MP3,      AV_CODEC_ID_AC3,
                               AV_CODEC_ID_PCM_S16LE, AV_CODEC_ID_PCM_ALAW, AV_CODEC_ID_PCM_MULAW};
constexpr std::array kRtpAudio{AV_CODEC_ID_AAC,       AV_CODEC_ID_MP2,       AV_CODEC_ID_MP3,
                               AV_CODEC_ID_AC3,       AV_CODEC_ID_OPUS,      AV_CODEC_ID_VORBIS,
                               AV_CODEC_ID_PCM_ALAW,  AV_CODEC_ID_PCM_MULAW, AV_CODEC_ID_AMR_NB,
                               AV_CODEC_ID_ADPCM_G722};

constexpr std::array kTsVideo{AV_CODEC_ID_H264, AV_CODEC_ID_HEVC, AV_CODEC_ID_MPEG2VIDEO,
                              AV_CODEC_ID_MPEG1VIDEO, AV_CODEC_ID_MPEG4};
constexpr std::array kHlsVideo{AV_CODEC_ID_H264, AV_CODEC_ID_HEVC};
constexpr std::array kHlsFmp4Video{AV_CODEC_ID_H264, AV_CODEC_ID_HEVC, AV_CODEC_ID_AV1};

struct MuxerAudio {
  std::string_view muxer;
  std::span<const AVCodecID> codecs;
};
// What players can play, which is less than what the muxers accept.
constexpr std::array<MuxerAudio, 15> kAudio{{
    {"mp4", kMp4Audio},
    {"ipod", kMp4Audio},
    {"f4v", kFlvAudio},
    {"mov", kMovAudio},
    {"3gp", k3gpAudio},
    {"3g2", k3gpAudio},
    {"mpegts", kTsAudio},
    {"rtp_mpegts", kTsAudio},
    {"webm", kWebmAudio},
    {"ogg", kOggAudio},
    {"flv", kFlvAudio},
    {"matroska", kMatroskaAudio},
    {"avi", kAviAudio},
    {"nut", kMatroskaAudio},
    {"rtsp", kRtpAudio},
}};

bool contains(std::span<const AVCodecID> codecs, AVCodecID codec) {
  return std::find(codecs.begin(), codecs.end(), codec) != codecs.end();
}

std::span<const AVCodecID> audio_codecs_of(const Container& container) {
  if (!container.muxer) return {};
  if (container.fmp4_segments) return kMp4Audio;
  const auto row = std::ranges::find(kAudio, container.muxer->name, &MuxerAudio::muxer);
  return row == kAudio.end() ? std::span<const AVCodecID>() : row->codecs;
}

const char* muxer_of_scheme(std::string_view scheme) {
  if (scheme.starts_with("rtmp")) return "flv";
  if (scheme == "rtsp" || scheme == "rtsps") return "rtsp";
  if (scheme == "srt" || scheme == "udp") return "mpegts";
  return nullptr;
}

const AVOutputFormat* muxer_of(const OutputOptions& options, const Container& container) {
  if (!options.format.empty()) {
    return av_guess_format(options.format.c_str(), nullptr, nullptr);
  }
  if (!container.local) {
    if (const char* muxer = muxer_of_scheme(url_scheme(container.url))) {
      return av_guess_format(muxer, nullptr, nullptr);
    }
  }
  return av_guess_format(nullptr, container.url.c_str(), nullptr);
}

bool is_special_file(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  return !error && std::filesystem::exists(status) && !std::filesystem::is_regular_file(status);
}

[[noreturn]] void reject(const OutputOptions& options, const std::string& what) {
  throw FeedError(FeedFault::kConfiguration, "output " + options.name + ": " + what);
}

}  // namespace

Container container_of(const OutputOptions& options) {
  Container container;
  const std::string scheme = url_scheme(options.url);
  if (scheme == "null" || options.format == "null") return container;

  container.url = options.url == "-" ? "pipe:1" : options.url;
  if (scheme == "file") {
    container.url.erase(0, std::string_view(container.url).substr(5).starts_with("//") ? 7 : 5);
    container.local = true;
  } else {
    container.local = scheme.empty() && options.url != "-";
  }
  container.muxer = muxer_of(options, container);

  if (container.muxer && std::string_view(container.muxer->name) == "hls") {
    container.kind = OutputKind::kPlaylist;
    container.fmp4_segments =
        std::any_of(options.options.begin(), options.options.end(), [](const AvOption& option) {
          return option.key == "hls_segment_type" &&
                 (option.value == "fmp4" || option.value == "1");
        });
    container.muxer = av_guess_format(container.fmp4_segments ? "mp4" : "mpegts", nullptr, nullptr);
  } else if (!container.local || (container.muxer && (container.muxer->flags & AVFMT_NOFILE))) {
    container.kind = OutputKind::kStream;
  } else {
    container.kind = OutputKind::kFile;
  }
  return container;
}

Container container_on_disk(const OutputOptions& options) {
  Container container = container_of(options);
  if (container.kind == OutputKind::kFile && is_special_file(container.url)) {
    container.kind = OutputKind::kStream;
  }
  return container;
}

void check_container(const OutputOptions& options, const Container& container) {
  if (container.kind != OutputKind::kNull && container.url.empty()) {
    reject(options, "the url names no file; say where to write, or null: to discard");
  }
  if (container.kind != OutputKind::kNull && !container.muxer) {
    if (!options.format.empty()) {
      reject(options, "FFmpeg here has no container \"" + options.format +
                          "\"; set format to one that `ffmpeg -muxers` lists");
    }
    reject(options, "no container is known for " + redact(options.url) +
                        "; use a known ending (.mp4, .mkv, .ts, .m3u8, ...) or set format");
  }
  if (container.kind == OutputKind::kPlaylist && !container.local) {
    reject(options, "playlists are written into folders; write " + redact(options.url) +
                        " into one that a web server serves");
  }
  if (options.segment && container.kind != OutputKind::kFile) {
    reject(options, "segment cuts files, and " + redact(options.url) + " is none; remove segment");
  }
}

std::optional<std::string> why_no_video(const Container& container, AVCodecID codec) {
  if (!container.muxer) return std::nullopt;
  const std::string_view muxer = container.muxer->name;
  const bool playlist = container.kind == OutputKind::kPlaylist;
  bool held = false;
  if (playlist) {
    held = contains(container.fmp4_segments ? std::span<const AVCodecID>(kHlsFmp4Video)
                                            : std::span<const AVCodecID>(kHlsVideo),
                    codec);
  } else if (muxer == "mpegts" || muxer == "rtp_mpegts") {
    held = contains(kTsVideo, codec);
  } else {
    const int answer = avformat_query_codec(container.muxer, codec, FF_COMPLIANCE_NORMAL);
    // Muxers of one elementary stream have no list of codecs, and write the bytes of any.
    const bool raw_stream = answer < 0 && (container.muxer->flags & AVFMT_NOTIMESTAMPS);
    held = raw_stream ? container.muxer->video_codec == codec : answer != 0;
  }
  if (held) return std::nullopt;
  const std::string what = "the container " + std::string(name_of(container)) + " cannot hold " +
                           avcodec_get_name(codec) + " video; use ";
  if (!playlist) return what + "another container or codec";
  const bool fits_fmp4 = !container.fmp4_segments && contains(kHlsFmp4Video, codec);
  return what + "H.264 or HEVC, which players take" +
         (fits_fmp4 ? ", or options: {hls_segment_type: fmp4}" : "");
}

void check_video(const OutputOptions& options, const Container& container, AVCodecID codec) {
  if (const auto why = why_no_video(container, codec)) reject(options, *why);
}

std::string_view name_of(const Container& container) {
  return container.kind == OutputKind::kPlaylist ? "hls" : container.muxer->name;
}

bool holds_audio(const Container& container, AVCodecID codec) {
  return contains(audio_codecs_of(container), codec);
}

std::string audio_encoder_for(const Container& container) {
  for (const AVCodecID codec : audio_codecs_of(container)) {
    if (const AVCodec* encoder = avcodec_find_encoder(codec)) return encoder->name;
  }
  return {};
}

std::string why_no_audio(const OutputOptions& options, const Container& container,
                         AVCodecID codec) {
  std::string remedy = audio_encoder_for(container);
  if (!remedy.empty()) {
    remedy =
        fmt::format("; audio: {{codec: {}}} in encode {} transcodes it (transcode: --audio {})",
                    remedy, options.from, remedy);
  }
  return fmt::format("{} is nothing players can read in {}{}", avcodec_get_name(codec),
                     name_of(container), remedy);
}

}  // namespace framelane
