#pragma once

extern "C" {
#include <libavutil/rational.h>
}

#include <chrono>
#include <cstdint>
#include <optional>

namespace framelane {

/// The number of the group of pictures that a time on the feed's line is in: groups begin at the
/// multiples of `gop`.
std::int64_t group_at(std::int64_t time_us, std::chrono::microseconds gop);

/// Says which frames an encode has to make keyframes: the first one at or after each multiple of
/// `gop` on the feed's time line. So the encodes of a feed have them at the same times, whatever
/// the frame rate is, and whatever rate an encode is limited to (RateLimit). One thread.
class KeyframeTimes {
 public:
  /// Empty: the encoder decides, and no frame is due.
  explicit KeyframeTimes(std::optional<std::chrono::microseconds> gop) : gop_(gop) {}

  /// From the next frame on, groups have this length.
  void set_gop(std::optional<std::chrono::microseconds> gop);
  /// True if the frame has to be a keyframe. To be asked once for each frame, in their order.
  bool due(std::int64_t pts, AVRational time_base);

 private:
  std::optional<std::chrono::microseconds> gop_;
  std::optional<std::int64_t> group_;  // of the last frame
};

}  // namespace framelane
