#include "pipeline/source/access_unit.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace framelane {
namespace {

constexpr std::array<std::uint8_t, 3> kStartCode{0, 0, 1};

/// Whether a unit with this first byte is a part of a picture. H.264, table 7-1: types 1 to 5 are
/// slices, 20 and 21 those of further views. H.265, table 7-1: types below 32.
bool is_slice(AVCodecID codec, std::uint8_t first) {
  if (codec == AV_CODEC_ID_HEVC) return ((first >> 1) & 0x3f) < 32;
  const int type = first & 0x1f;
  return (type >= 1 && type <= 5) || type == 20 || type == 21;
}

}  // namespace

bool is_without_picture(const AVPacket& packet, const AVCodecParameters& parameters) {
  const AVCodecID codec = parameters.codec_id;
  if (codec != AV_CODEC_ID_H264 && codec != AV_CODEC_ID_HEVC) return false;
  // Other containers give the length of each unit, and their extradata begins with a version.
  if (parameters.extradata_size > 0 && parameters.extradata[0] != 0) return false;
  bool has_units = false;
  const std::uint8_t* const end = packet.data + packet.size;
  for (const std::uint8_t* at = packet.data;; has_units = true) {
    at = std::search(at, end, kStartCode.begin(), kStartCode.end());
    if (end - at <= static_cast<std::ptrdiff_t>(kStartCode.size())) return has_units;
    at += kStartCode.size();
    if (is_slice(codec, *at)) return false;
  }
}

}  // namespace framelane
