#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/color_spec.hpp"
#include "kernels/pixel_format.hpp"

namespace framelane {

/// A positive ratio; frame rates are frames per second.
struct Rational {
  int num = 0;
  int den = 1;
  friend bool operator==(const Rational&, const Rational&) = default;
};

/// One option handed to FFmpeg. An `inherited` one comes from the configuration's defaults and may
/// go unused (rtsp_transport for a file); any other that nothing consumes fails the feed.
struct AvOption {
  std::string key;
  std::string value;
  bool inherited = false;
};
using AvOptions = std::vector<AvOption>;

struct BackoffOptions {
  std::chrono::milliseconds first{1000};
  std::chrono::milliseconds max{60000};
};

/// Overrides of what a source says about its colour, or targets of a conversion; an empty field
/// is "auto".
struct ColorOverride {
  std::optional<Matrix> matrix;
  std::optional<Range> range;
  std::optional<Siting> siting;
};

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

struct CodecCandidate {
  std::string name;  ///< FFmpeg's encoder name
  AvOptions options{};
};

struct EncodeOptions {
  std::string name;
  bool copy_video = false;
  /// Tried in order; the first that is available is used. Empty exactly when copy_video.
  std::vector<CodecCandidate> codecs;
  std::optional<PixelFormat>
      format;           ///< convert.format; empty: the source's if the encoder takes it
  ColorOverride color;  ///< convert.matrix, range, siting
  std::optional<std::int64_t> bitrate;  ///< bits per second
  std::optional<std::chrono::microseconds> gop;
  bool copy_audio = false;
};

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

enum class OnFull { kAuto, kBlock, kDrop };

inline constexpr int kMostSlices = 16;

struct FeedOptions {
  std::string name;
  InputOptions input;
  std::vector<EncodeOptions> encodes;
  std::vector<OutputOptions> outputs;
  int ring = 8;
  int lanes = 3;
  std::optional<int> slices;  ///< row ranges a frame's upload is cut into; empty: by its size
  OnFull on_full = OnFull::kAuto;
  bool analyse = false;  ///< the luma of what the first encode that decodes encodes
  /// --once and transcode: a source that cannot be opened or breaks fails the feed at once.
  bool once = false;
  /// The feed's first start in this process: outputs complete what an earlier one left behind.
  bool recover = false;
};

/// Whether a full ring or queue makes the producer wait (true) or lose the frame (false), when the
/// source is live or not.
bool blocks_when_full(OnFull on_full, bool live);

}  // namespace framelane
