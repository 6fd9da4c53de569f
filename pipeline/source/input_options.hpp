#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/picture_mask.hpp"
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
  enum class Timestamps { kRate, kArrival, kProducer } timestamps = Timestamps::kRate;

  friend bool operator==(const RawVideoOptions&, const RawVideoOptions&) = default;
};

/// Which pictures of a compressed stream are not decoded.
enum class Skip {
  kNone,
  kNonRef,  ///< those that no other picture needs
  kNonKey,  ///< all but keyframes
};

/// What a source may make framelane hold or read.
struct InputLimits {
  std::int64_t pixels = std::int64_t{8192} * 8192;  ///< of a picture
  int streams = 128;
  std::int64_t probe_size = 5'000'000;      ///< bytes, to find the format and the streams
  std::int64_t playlist_size = 16'000'000;  ///< bytes of one playlist

  /// For AVCodecContext::max_pixels: with room for the rows and columns that codecs add at the
  /// edges and cut off.
  std::int64_t coded_pixels() const { return pixels + pixels / 8 + (1 << 16); }

  friend bool operator==(const InputLimits&, const InputLimits&) = default;
};

struct InputOptions {
  std::string url;     ///< with secrets expanded: never log it but through redact()
  std::string format;  ///< FFmpeg's name of a demuxer; empty: probed. "rawvideo": `raw` is set
  AvOptions options;
  std::chrono::milliseconds timeout{10000};
  BackoffOptions reconnect;
  enum class DecoderKind { kAuto, kSoftware, kNvdec } decoder = DecoderKind::kAuto;
  Skip skip = Skip::kNone;      ///< the feed's `skip`
  std::vector<MaskShape> mask;  ///< the feed's `mask`: what is covered in every decoded picture
  bool loop = false;
  enum class Pace { kAsap, kRealtime } pace = Pace::kAsap;
  ColorOverride color;
  InputLimits limits;
  // What the input may open and use, as InputAccess reads it. FFmpeg's names, "default" or "all".
  // Empty: what the kind of the URL has by default.
  std::vector<std::string> protocols;
  std::vector<std::string> formats;
  std::vector<std::string> decoders;
  bool reach_loopback = false;         ///< `addresses`: also if the URL's host is no such address
  bool reach_link_local = false;       ///< likewise
  std::optional<RawVideoOptions> raw;  ///< set if format is "rawvideo", else not
  std::optional<std::chrono::microseconds> duration;  ///< stop after this much media (transcode)

  friend bool operator==(const InputOptions&, const InputOptions&) = default;
};

/// True for what comes from the network or a capture device, or is paced in real time. Live sources
/// drop when the ring is full, reconnect for ever and never "end". This goes by the configuration
/// alone: over HTTP come files and cameras, a playlist may be finished or grow, and an input may
/// turn out to be live once it is open (SourceInfo::live) though this says no.
bool is_live(const InputOptions& input);

/// True if the sender waits while nothing is read, as over TCP. Otherwise what comes meanwhile is
/// lost as soon as the system's buffer is full: over UDP, and so over RTSP unless its options name
/// another transport, from a capture device, and from shared memory, whose producer may go on
/// without the frames that nobody takes.
bool waits_for_reader(const InputOptions& input);

/// The path of the socket in "shm:PATH"; nothing for other URLs.
std::optional<std::string> shm_socket(std::string_view url);

/// True for the paths that are taken for cameras of V4L2: /dev/video0 and the like.
bool names_v4l2_device(std::string_view url);

}  // namespace framelane
