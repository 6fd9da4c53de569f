#include "pipeline/packets/media.hpp"

#include <cstring>

namespace framelane {
namespace {

bool same_extradata(const AVCodecParameters& a, const AVCodecParameters& b) {
  return a.extradata_size == b.extradata_size &&
         (a.extradata_size == 0 ||
          std::memcmp(a.extradata, b.extradata, static_cast<std::size_t>(a.extradata_size)) == 0);
}

bool same_picture(const AVCodecParameters& a, const AVCodecParameters& b) {
  // The pixel format of a copied stream is known only if probing has decoded a frame. An unknown
  // one is no change.
  const bool same_pixels = a.format == b.format || a.format < 0 || b.format < 0;
  return same_pixels && a.width == b.width && a.height == b.height &&
         av_cmp_q(a.sample_aspect_ratio, b.sample_aspect_ratio) == 0 &&
         a.color_space == b.color_space && a.color_range == b.color_range &&
         a.color_primaries == b.color_primaries && a.color_trc == b.color_trc &&
         a.chroma_location == b.chroma_location;
}

}  // namespace

AVRational plausible_rate(AVRational guess) {
  const bool plausible = guess.num > 0 && guess.den > 0 && av_cmp_q(guess, {1000, 1}) < 0;
  return plausible ? guess : AVRational{0, 1};
}

bool same_stream(const StreamFormat& a, const StreamFormat& b) {
  const AVCodecParameters& x = *a.parameters;
  const AVCodecParameters& y = *b.parameters;
  if (x.codec_type != y.codec_type || x.codec_id != y.codec_id || !same_extradata(x, y) ||
      av_cmp_q(a.time_base, b.time_base) != 0) {
    return false;
  }
  if (x.codec_type == AVMEDIA_TYPE_VIDEO) return same_picture(x, y);
  return x.sample_rate == y.sample_rate && x.ch_layout.nb_channels == y.ch_layout.nb_channels;
}

bool same_format(const MediaFormat& a, const MediaFormat& b) {
  return &a == &b || (same_stream(a.video, b.video) && same_audio(audio_of(&a), audio_of(&b)));
}

const StreamFormat* audio_of(const MediaFormat* media) {
  return media != nullptr && media->audio ? &*media->audio : nullptr;
}

bool same_audio(const StreamFormat* a, const StreamFormat* b) {
  if (a == nullptr || b == nullptr) return a == b;
  return a == b || same_stream(*a, *b);
}

}  // namespace framelane
