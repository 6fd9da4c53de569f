#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "pipeline/base/av_option.hpp"
#include "pipeline/base/backoff.hpp"

namespace framelane {

/// How files are cut, and which of them stay. Without `keep_…` all do.
struct SegmentOptions {
  std::chrono::milliseconds length{60000};
  std::optional<std::chrono::seconds> keep_age;
  std::optional<std::int64_t> keep_bytes;  ///< of all complete files together
};

/// What an output does if a file has the name that it wants to give.
enum class Existing {
  kNumber,   ///< gives the new file a number: NAME.2.ext
  kRefuse,   ///< fails (transcode)
  kReplace,  ///< replaces the file, and begins a playlist again (transcode -y)
};

struct OutputOptions {
  std::string name;
  std::string from;  ///< an encode's name
  std::string
      url;  ///< ${feed} and ${output} are expanded, strftime fields are not; "null:" discards
  std::string format;  ///< FFmpeg's muxer name; empty: from the URL
  AvOptions options;
  std::chrono::milliseconds timeout{10000};
  BackoffOptions reconnect;
  int queue = 512;  ///< packets
  std::optional<SegmentOptions> segment;
  Existing existing = Existing::kNumber;
};

}  // namespace framelane
