#pragma once

extern "C" {
#include <libavutil/rational.h>
}

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace framelane {

/// What a master playlist says of one variant (RFC 8216, 4.3.4.2).
struct HlsVariant {
  std::string uri{};     ///< of its media playlist
  std::string codecs{};  ///< of all its streams, with commas between; empty: not known, left out
  int width = 0;
  int height = 0;
  AVRational frame_rate{0, 1};  ///< 0/1: not known, left out
  std::int64_t bandwidth = 0;   ///< bits per second: of the segment with the most
  std::int64_t average_bandwidth = 0;
  /// The media playlist of its sound, which counts in the codecs and bandwidths; empty: it has
  /// none, or it is in the variant's own segments.
  std::string sound_uri{};
};

/// The text of the master playlist of these variants, in their order. Those with a sound_uri have
/// the same.
std::string master_playlist(const std::vector<HlsVariant>& variants);

/// Measures a variant's bit rates from its segments. Not thread-safe.
class SegmentRates {
 public:
  /// `target`: EXT-X-TARGETDURATION. A segment shorter than half of it counts together with the one
  /// before it (RFC 8216, 4.3.4.2: a set of 0.5 to 1.5 times the target).
  void add(std::int64_t bytes, std::chrono::microseconds duration,
           std::chrono::microseconds target);
  std::int64_t peak() const { return peak_; }
  std::int64_t average() const;

 private:
  std::int64_t peak_ = 0;
  std::int64_t bytes_ = 0;
  std::chrono::microseconds duration_{0};
  std::int64_t last_bytes_ = 0;
  std::chrono::microseconds last_duration_{0};
};

}  // namespace framelane
