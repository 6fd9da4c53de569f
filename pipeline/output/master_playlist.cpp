#include "pipeline/output/master_playlist.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace framelane {
namespace {

using std::chrono::microseconds;

std::int64_t bits_per_second(std::int64_t bytes, microseconds duration) {
  if (duration <= microseconds(0)) return 0;
  return static_cast<std::int64_t>(
      std::ceil(static_cast<double>(bytes) * 8e6 / static_cast<double>(duration.count())));
}

}  // namespace

std::string master_playlist(const std::vector<HlsVariant>& variants) {
  std::string text = "#EXTM3U\n#EXT-X-VERSION:6\n#EXT-X-INDEPENDENT-SEGMENTS\n";
  const auto with_sound = std::ranges::find_if(
      variants, [](const HlsVariant& variant) { return !variant.sound_uri.empty(); });
  if (with_sound != variants.end()) {
    text += fmt::format(
        "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"sound\",NAME=\"sound\",DEFAULT=YES,AUTOSELECT=YES,"
        "URI=\"{}\"\n",
        with_sound->sound_uri);
  }
  for (const HlsVariant& variant : variants) {
    text += fmt::format("#EXT-X-STREAM-INF:BANDWIDTH={},AVERAGE-BANDWIDTH={}", variant.bandwidth,
                        variant.average_bandwidth);
    if (!variant.codecs.empty()) text += fmt::format(",CODECS=\"{}\"", variant.codecs);
    text += fmt::format(",RESOLUTION={}x{}", variant.width, variant.height);
    if (variant.frame_rate.num > 0 && variant.frame_rate.den > 0) {
      text += fmt::format(",FRAME-RATE={:.3f}", av_q2d(variant.frame_rate));
    }
    if (!variant.sound_uri.empty()) text += ",AUDIO=\"sound\"";
    text += fmt::format("\n{}\n", variant.uri);
  }
  return text;
}

void SegmentRates::add(std::int64_t bytes, microseconds duration, microseconds target) {
  bytes_ += bytes;
  duration_ += duration;
  if (duration * 2 >= target) {
    peak_ = std::max(peak_, bits_per_second(bytes, duration));
  } else if (last_duration_ > microseconds(0)) {
    peak_ = std::max(peak_, bits_per_second(last_bytes_ + bytes, last_duration_ + duration));
  } else {
    peak_ = std::max(peak_, average());
  }
  last_bytes_ = bytes;
  last_duration_ = duration;
}

std::int64_t SegmentRates::average() const { return bits_per_second(bytes_, duration_); }

}  // namespace framelane
