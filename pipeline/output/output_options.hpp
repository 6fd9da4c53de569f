#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "pipeline/base/av_option.hpp"
#include "pipeline/base/backoff.hpp"
#include "pipeline/packets/media.hpp"

namespace framelane {

/// An amount of a file system's space.
struct DiskShare {
  std::int64_t bytes = 0;
  double part = 0;  ///< of the whole file system, 0 to 1; in its place

  bool operator==(const DiskShare&) const = default;
  std::int64_t of(std::int64_t whole) const {
    return part > 0 ? static_cast<std::int64_t>(part * static_cast<double>(whole)) : bytes;
  }
};

/// How files are cut, and which of them stay. Without `keep_…` all do.
struct SegmentOptions {
  std::chrono::milliseconds length{60000};
  std::optional<std::chrono::seconds> keep_age;
  std::optional<std::int64_t> keep_bytes;  ///< of all complete files together
  std::optional<DiskShare> keep_free;      ///< of the file system, for whoever writes to it

  bool operator==(const SegmentOptions&) const = default;
  bool deletes() const { return keep_age || keep_bytes || keep_free; }
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
  /// The one stream that is written; nothing: all. Sound alone is cut where the video is.
  std::optional<StreamKind> only;
  /// The path of the master playlist, if this is one of several renditions: an output with several
  /// encodes is one of these for each of them, and one for their sound, all with the same name.
  /// Empty: it stands alone.
  std::string master;
  std::string
      url;  ///< ${feed} and ${output} are expanded, strftime fields are not; "null:" discards
  std::string format;  ///< FFmpeg's muxer name; empty: from the URL
  AvOptions options;
  /// The longest time between keyframes; nothing if that is not known.
  std::optional<std::chrono::microseconds> gop;
  std::chrono::milliseconds timeout{10000};
  BackoffOptions reconnect;
  int queue = 512;  ///< packets
  std::optional<SegmentOptions> segment;
  Existing existing = Existing::kNumber;

  friend bool operator==(const OutputOptions&, const OutputOptions&) = default;
};

/// True if Output::change can make one of the other: they differ in `reconnect`, `queue`, and what
/// `segment` keeps at most.
bool can_change_in_place(const OutputOptions& a, const OutputOptions& b);

}  // namespace framelane
