#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "pipeline/base/av_option.hpp"
#include "pipeline/base/backoff.hpp"

namespace framelane {

struct SegmentOptions {
  std::chrono::milliseconds length{60000};
  std::optional<std::chrono::seconds> keep_age;
  std::optional<std::int64_t> keep_bytes;
};

/// What becomes of a file that has the name an output wants to give.
enum class Existing {
  kNumber,   ///< the new one gets a number: NAME.2.ext
  kRefuse,   ///< transcode: the output fails; an interrupted run's NAME.part is written over
  kReplace,  ///< transcode -y: it is replaced, and a playlist begins anew
};

struct OutputOptions {
  std::string name;
  std::string from;  ///< an encode's name
  std::string url;   ///< ${feed} and ${output} expanded, strftime fields not yet; "null:" discards
  std::string format;  ///< FFmpeg's muxer name; empty: from the URL
  AvOptions options;
  std::chrono::milliseconds timeout{10000};
  BackoffOptions reconnect;
  int queue = 512;  ///< packets
  std::optional<SegmentOptions> segment;
  Existing existing = Existing::kNumber;
};

}  // namespace framelane
