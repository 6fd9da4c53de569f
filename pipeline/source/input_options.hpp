#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "pipeline/base/av_option.hpp"
#include "pipeline/base/backoff.hpp"
#include "pipeline/base/color_override.hpp"
#include "pipeline/base/rational.hpp"

namespace framelane {

/// Raw video has no header: all of this comes from the configuration.
struct RawVideoOptions {
  std::string pixel_format;  ///< FFmpeg's name, e.g. "bgra", "yuvj420p"
  int width = 0;
  int height = 0;
  Rational rate{25, 1};
  int pitch = 0;  ///< bytes per row of the first plane; 0: rows are packed
  enum class Timestamps { kRate, kArrival } timestamps = Timestamps::kRate;
};

struct InputOptions {
  std::string url;     ///< with secrets expanded: never log it but through redact()
  std::string format;  ///< FFmpeg's demuxer name; empty: probed. "rawvideo" selects `raw`
  AvOptions options;
  std::chrono::milliseconds timeout{10000};
  BackoffOptions reconnect;
  enum class DecoderKind { kAuto, kSoftware, kNvdec } decoder = DecoderKind::kAuto;
  bool loop = false;
  enum class Pace { kAsap, kRealtime } pace = Pace::kAsap;
  ColorOverride color;
  std::optional<RawVideoOptions> raw;                 ///< set exactly when format is "rawvideo"
  std::optional<std::chrono::microseconds> duration;  ///< stop after this much media (transcode)
};

/// From the network or a capture device, or paced in real time, as far as the configuration tells.
/// Live sources drop when the ring is full, reconnect for ever and never "end". Over HTTP come
/// files as well: what is opened may turn out live (SourceInfo::live) though this says no.
bool is_live(const InputOptions& input);

}  // namespace framelane
