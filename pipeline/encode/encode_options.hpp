#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/pixel_format.hpp"
#include "pipeline/base/av_option.hpp"
#include "pipeline/base/color_override.hpp"
#include "pipeline/base/rational.hpp"
#include "pipeline/encode/picture_options.hpp"
#include "pipeline/overlay/overlay_options.hpp"

namespace framelane {

/// An encoder that may be used, with its options.
struct CodecCandidate {
  std::string name;  ///< FFmpeg's encoder name
  AvOptions options{};

  friend bool operator==(const CodecCandidate&, const CodecCandidate&) = default;
};

/// An entry of a feed's `encodes`.
struct EncodeOptions {
  std::string name;
  bool copy_video = false;  ///< codec: copy; packets pass unchanged
  /// Tried in order; the first that is available is used. Empty exactly when copy_video.
  std::vector<CodecCandidate> codecs;
  /// convert.format; empty: the source's if the encoder takes it.
  std::optional<PixelFormat> format;
  ColorOverride color;                           ///< convert.matrix, range, siting
  PictureOptions picture;                        ///< convert.crop, size, fit …
  std::optional<Rational> rate;                  ///< convert.rate: frames per second, at most
  std::vector<OverlayOptions> overlays;          ///< drawn in this order
  std::optional<std::int64_t> bitrate;           ///< bits per second
  std::optional<std::chrono::microseconds> gop;  ///< time between keyframes
  bool copy_audio = false;
  /// The sound is transcoded: encoders, tried in order. Empty: it is copied or left out.
  std::vector<CodecCandidate> audio_codecs;
  std::optional<std::int64_t> audio_bitrate;  ///< bits per second

  bool transcodes_audio() const { return !audio_codecs.empty(); }
  bool wants_audio() const { return copy_audio || transcodes_audio(); }

  friend bool operator==(const EncodeOptions&, const EncodeOptions&) = default;
};

/// True if no more than what is drawn has to change to make one of the other.
bool differ_only_in_overlays(const EncodeOptions& a, EncodeOptions b);
/// True if an encode can become the other by another encoder alone: what it does with sound, and
/// whether it copies the video, stays.
bool can_become(const EncodeOptions& a, const EncodeOptions& b);

}  // namespace framelane
