#include "pipeline/output/codec_name.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace framelane {
namespace {

using HeaderBytes = std::span<const std::uint8_t>;

/// Of a sequence parameter set: enough for the profile, the level and the constraints.
constexpr std::size_t kStartOfSps = 32;

/// The first bytes of a NAL unit, without those that only prevent a start code (H.264, 7.4.1).
std::vector<std::uint8_t> without_emulation(HeaderBytes nal) {
  std::vector<std::uint8_t> bytes;
  int zeros = 0;
  for (std::size_t i = 0; i < nal.size() && bytes.size() < kStartOfSps; ++i) {
    if (zeros >= 2 && nal[i] == 3) {
      zeros = 0;
      continue;
    }
    zeros = nal[i] == 0 ? zeros + 1 : 0;
    bytes.push_back(nal[i]);
  }
  return bytes;
}

/// The first NAL unit behind a start code (H.264, annex B) that `wanted` takes by its first byte.
std::vector<std::uint8_t> find_nal(HeaderBytes data, bool (*wanted)(std::uint8_t)) {
  constexpr std::array<std::uint8_t, 3> kStartCode{0, 0, 1};
  for (auto at = data.begin();;) {
    at = std::search(at, data.end(), kStartCode.begin(), kStartCode.end());
    if (data.end() - at < 4) return {};
    at += 3;
    if (wanted(*at)) return without_emulation({at, data.end()});
  }
}

bool is_h264_sps(std::uint8_t byte) { return (byte & 0x1f) == 7; }
bool is_hevc_sps(std::uint8_t byte) { return ((byte >> 1) & 0x3f) == 33; }

std::string avc_name(HeaderBytes extradata, HeaderBytes keyframe) {
  // MP4's form has the same three bytes behind its version (ISO/IEC 14496-15, 5.3.3.1).
  if (extradata.size() >= 4 && extradata[0] == 1) {
    return fmt::format("avc1.{:02x}{:02x}{:02x}", extradata[1], extradata[2], extradata[3]);
  }
  std::vector<std::uint8_t> sps = find_nal(extradata, is_h264_sps);
  if (sps.empty()) sps = find_nal(keyframe, is_h264_sps);
  if (sps.size() < 4) return {};
  return fmt::format("avc1.{:02x}{:02x}{:02x}", sps[1], sps[2], sps[3]);
}

/// `profile`: general_profile_space up to general_level_idc (H.265, 7.3.3).
std::string hevc_name_of(HeaderBytes profile) {
  std::string space;
  if (const int number = profile[0] >> 6; number > 0) space = static_cast<char>('A' + number - 1);
  std::uint32_t compatible = 0;  // with the bits in reverse order
  for (std::size_t bit = 0; bit < 32; ++bit) {
    if ((profile[1 + bit / 8] >> (7 - bit % 8)) & 1) compatible |= std::uint32_t{1} << bit;
  }
  std::string name = fmt::format("hvc1.{}{}.{:X}.{}{}", space, profile[0] & 0x1f, compatible,
                                 (profile[0] & 0x20) != 0 ? 'H' : 'L', profile[11]);
  std::size_t constraints = 6;
  while (constraints > 0 && profile[4 + constraints] == 0) --constraints;
  for (std::size_t i = 0; i < constraints; ++i) name += fmt::format(".{:X}", profile[5 + i]);
  return name;
}

std::string hevc_name(HeaderBytes extradata, HeaderBytes keyframe) {
  constexpr std::size_t kProfileBytes = 12;
  if (extradata.size() > kProfileBytes && extradata[0] == 1) {
    return hevc_name_of(extradata.subspan(1, kProfileBytes));
  }
  std::vector<std::uint8_t> sps = find_nal(extradata, is_hevc_sps);
  if (sps.empty()) sps = find_nal(keyframe, is_hevc_sps);
  constexpr std::size_t kBefore = 3;  // the NAL unit's header, and the identifiers
  if (sps.size() < kBefore + kProfileBytes) return {};
  return hevc_name_of(HeaderBytes(sps).subspan(kBefore, kProfileBytes));
}

/// From the av1C box (AV1 Codec ISO Media File Format Binding, section 5).
std::string av1_name(HeaderBytes extradata) {
  if (extradata.size() < 4 || extradata[0] != 0x81) return {};
  const bool high_bit_depth = (extradata[2] & 0x40) != 0;
  const bool twelve = (extradata[2] & 0x20) != 0;
  return fmt::format("av01.{}.{:02}{}.{:02}", extradata[1] >> 5, extradata[1] & 0x1f,
                     (extradata[2] & 0x80) != 0 ? 'H' : 'M',
                     !high_bit_depth ? 8
                     : twelve        ? 12
                                     : 10);
}

/// The object type is in the first bits of the AudioSpecificConfig (ISO/IEC 14496-3, 1.6.2.1).
/// Without one FFmpeg's profile says the same, less one.
std::string aac_name(const AVCodecParameters& stream, HeaderBytes extradata) {
  int type = stream.profile >= 0 ? stream.profile + 1 : 2;
  if (extradata.size() >= 2) {
    type = extradata[0] >> 3;
    if (type == 31) type = 32 + ((extradata[0] & 7) << 3 | extradata[1] >> 5);
  }
  return fmt::format("mp4a.40.{}", type);
}

}  // namespace

std::string codec_name(const AVCodecParameters& stream, const AVPacket* keyframe) {
  const auto bytes = [](const std::uint8_t* data, int size) {
    return data == nullptr ? HeaderBytes() : HeaderBytes(data, static_cast<std::size_t>(size));
  };
  const HeaderBytes extradata = bytes(stream.extradata, stream.extradata_size);
  const HeaderBytes packet =
      keyframe == nullptr ? HeaderBytes() : bytes(keyframe->data, keyframe->size);
  switch (stream.codec_id) {
    case AV_CODEC_ID_H264:
      return avc_name(extradata, packet);
    case AV_CODEC_ID_HEVC:
      return hevc_name(extradata, packet);
    case AV_CODEC_ID_AV1:
      return av1_name(extradata);
    case AV_CODEC_ID_AAC:
      return aac_name(stream, extradata);
    case AV_CODEC_ID_MP3:
      return "mp4a.40.34";
    case AV_CODEC_ID_AC3:
      return "ac-3";
    case AV_CODEC_ID_EAC3:
      return "ec-3";
    case AV_CODEC_ID_OPUS:
      return "Opus";
    case AV_CODEC_ID_FLAC:
      return "fLaC";
    default:
      return {};
  }
}

}  // namespace framelane
