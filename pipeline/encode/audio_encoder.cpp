#include "pipeline/encode/audio_encoder.hpp"

extern "C" {
#include <libavutil/channel_layout.h>
#include <libavutil/error.h>
}

#include <algorithm>
#include <cstdint>
#include <new>
#include <span>
#include <string>
#include <utility>

#include "pipeline/av/av_error.hpp"
#include "pipeline/av/av_log_capture.hpp"
#include "pipeline/base/failure.hpp"
#include "pipeline/encode/codec_options.hpp"

namespace framelane {
namespace {

#if LIBAVCODEC_VERSION_INT >= AV_VERSION_INT(61, 13, 100)
template <typename T>
std::span<const T> supported(const AVCodec& codec, AVCodecConfig kind) {
  const void* list = nullptr;
  int count = 0;
  if (avcodec_get_supported_config(nullptr, &codec, kind, 0, &list, &count) < 0 || !list) return {};
  return {static_cast<const T*>(list), static_cast<std::size_t>(count)};
}
std::span<const int> rates_of(const AVCodec& codec) {
  return supported<int>(codec, AV_CODEC_CONFIG_SAMPLE_RATE);
}
std::span<const AVSampleFormat> sample_formats_of(const AVCodec& codec) {
  return supported<AVSampleFormat>(codec, AV_CODEC_CONFIG_SAMPLE_FORMAT);
}
std::span<const AVChannelLayout> layouts_of(const AVCodec& codec) {
  return supported<AVChannelLayout>(codec, AV_CODEC_CONFIG_CHANNEL_LAYOUT);
}
#else
template <typename T, typename IsEnd>
std::span<const T> until(const T* list, IsEnd is_end) {
  std::size_t count = 0;
  while (list != nullptr && !is_end(list[count])) ++count;
  return {list, count};
}
std::span<const int> rates_of(const AVCodec& codec) {
  return until(codec.supported_samplerates, [](int rate) { return rate == 0; });
}
std::span<const AVSampleFormat> sample_formats_of(const AVCodec& codec) {
  return until(codec.sample_fmts, [](AVSampleFormat f) { return f == AV_SAMPLE_FMT_NONE; });
}
std::span<const AVChannelLayout> layouts_of(const AVCodec& codec) {
  return until(codec.ch_layouts, [](const AVChannelLayout& l) { return l.nb_channels == 0; });
}
#endif

/// The smallest rate that loses nothing, else the largest.
int nearest_rate(const AVCodec& codec, int wanted) {
  const std::span<const int> rates = rates_of(codec);
  if (rates.empty()) return wanted;
  int best = 0;
  for (const int rate : rates) {
    const bool loses = rate < wanted;
    const bool better = best < wanted ? rate > best : !loses && rate < best;
    if (better) best = rate;
  }
  return best;
}

/// The most channels up to those wanted; more only if the encoder takes none so few.
int nearest_channels(const AVCodec& codec, int wanted) {
  const std::span<const AVChannelLayout> layouts = layouts_of(codec);
  if (layouts.empty()) return wanted;
  return std::ranges::min_element(layouts, {},
                                  [wanted](const AVChannelLayout& layout) {
                                    const int channels = layout.nb_channels;
                                    return channels <= wanted ? wanted - channels : 1000 + channels;
                                  })
      ->nb_channels;
}

/// FFmpeg's AAC encoder warns if it is asked for more than the standard allows, or by its own
/// default for low rates: 6144 bits for each channel's 1024 samples (ISO/IEC 14496-3, 4.5.3.3).
std::int64_t limited_bitrate(const AudioTarget& target, std::int64_t bitrate) {
  if (target.codec->id != AV_CODEC_ID_AAC) return bitrate;
  const std::int64_t most = std::int64_t{6} * target.rate * target.channels;
  const std::int64_t usual = std::int64_t{64'000} * target.channels;
  return std::min(bitrate > 0 ? bitrate : usual, most);
}

AudioTarget target_of(const AVCodec& codec, const CodecCandidate& candidate, int rate, int channels,
                      std::int64_t bitrate) {
  const std::span<const AVSampleFormat> formats = sample_formats_of(codec);
  AudioTarget target{.codec = &codec,
                     .candidate = candidate,
                     .sample_format = formats.empty() ? AV_SAMPLE_FMT_S16 : formats.front(),
                     .rate = nearest_rate(codec, rate),
                     .channels = nearest_channels(codec, channels)};
  target.bitrate = limited_bitrate(target, bitrate);
  return target;
}

/// Null if the encoder does not open, for the reason that `why` is then.
CodecContextPtr try_open(const AudioTarget& target, std::string& why) {
  CodecContextPtr context(avcodec_alloc_context3(target.codec));
  if (!context) throw std::bad_alloc();
  context->sample_rate = target.rate;
  context->sample_fmt = target.sample_format;
  av_channel_layout_default(&context->ch_layout, target.channels);
  context->time_base = {1, target.rate};
  context->thread_count = 1;
  if (target.bitrate > 0) context->bit_rate = target.bitrate;
  context->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
  if (const auto refusal = apply_options(*context, target.candidate)) {
    throw FeedError(FeedFault::kConfiguration, *refusal);
  }
  const AvLogCapture log;
  const int result = avcodec_open2(context.get(), target.codec, nullptr);
  if (result >= 0) return context;
  why = target.candidate.name + " does not open for sound of " + std::to_string(target.rate) +
        " Hz and " + std::to_string(target.channels) +
        (target.channels == 1 ? " channel: " : " channels: ");
  if (is_shortage(result)) {
    throw FeedError(FeedFault::kMemory, why + shortage_text(log.reason(av_error_text(result))));
  }
  why += result == AVERROR_EXPERIMENTAL
             ? "it is experimental and needs the option strict=experimental"
             : log.reason(av_error_text(result));
  return nullptr;
}

}  // namespace

CodecContextPtr open_audio_encoder(const AudioTarget& target) {
  std::string why;
  CodecContextPtr encoder = try_open(target, why);
  if (!encoder) throw FeedError(FeedFault::kEncoder, why);
  return encoder;
}

ChosenAudioEncoder choose_audio_encoder(const EncodeOptions& options, int rate, int channels) {
  std::string passed_over;
  FeedFault fault = FeedFault::kConfiguration;
  for (const CodecCandidate& candidate : options.audio_codecs) {
    const AVCodec* codec = avcodec_find_encoder_by_name(candidate.name.c_str());
    std::string why =
        candidate.name + (codec == nullptr ? " is not in this FFmpeg" : " is no audio encoder");
    if (codec != nullptr && codec->type == AVMEDIA_TYPE_AUDIO) {
      AudioTarget target =
          target_of(*codec, candidate, rate, channels, options.audio_bitrate.value_or(0));
      CodecContextPtr encoder = try_open(target, why);
      if (encoder) return {std::move(target), std::move(encoder), std::move(passed_over)};
      fault = FeedFault::kEncoder;  // it may open for other sound
    }
    passed_over += (passed_over.empty() ? "" : "; ") + why;
  }
  const auto& tried = options.audio_codecs;
  const bool tried_aac = std::ranges::find(tried, "aac", &CodecCandidate::name) != tried.end();
  throw FeedError(fault, "no audio encoder is available: " + passed_over + "; name another one" +
                             (tried_aac ? "" : ", such as aac"));
}

FramePtr make_audio_frame(const AVCodecContext& encoder, int samples) {
  FramePtr frame = make_frame();
  frame->format = encoder.sample_fmt;
  frame->sample_rate = encoder.sample_rate;
  frame->nb_samples = samples;
  if (av_channel_layout_copy(&frame->ch_layout, &encoder.ch_layout) < 0 ||
      av_frame_get_buffer(frame.get(), 0) < 0) {
    throw std::bad_alloc();
  }
  return frame;
}

StreamFormat audio_format_of(const AVCodecContext& encoder) {
  StreamFormat format{.parameters = CodecParametersPtr(avcodec_parameters_alloc()),
                      .time_base = encoder.time_base};
  if (!format.parameters ||
      avcodec_parameters_from_context(format.parameters.get(), &encoder) < 0) {
    throw std::bad_alloc();
  }
  return format;
}

}  // namespace framelane
