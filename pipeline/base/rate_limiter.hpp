#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace framelane {

/// Of many equal log lines, lets the first through and counts the others; at the end of each window
/// of time it tells how many there were. Remembers at most kMaxLines lines. Reads no clock. Not
/// thread-safe.
class RateLimiter {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kMaxLines = 256;

  explicit RateLimiter(Clock::duration window) : window_(window) {}

  /// True if the line has to be written now; otherwise it was counted. Lines with the same `key`
  /// count as equal. `tag` and `line` come back in Repeats.
  bool admit(std::uint64_t key, int tag, std::string_view line, Clock::time_point now);

  struct Repeats {
    int tag = 0;
    std::string line;  ///< as it was first written
    std::uint64_t times = 0;
    Clock::duration span{};
  };
  /// The counts of windows that have ended by `now`, each returned once, in no order. A line that
  /// goes on repeating is summed up in every window; one that did not repeat is forgotten.
  std::vector<Repeats> take_ended(Clock::time_point now);

 private:
  struct Line {
    int tag = 0;
    std::string text;
    std::uint64_t repeats = 0;
    Clock::time_point since;
  };
  void make_room(Clock::time_point now);

  Clock::duration window_;
  std::unordered_map<std::uint64_t, Line> lines_;
  std::vector<Repeats> evicted_;                           // counts of lines that had to make room
  Clock::time_point next_end_ = Clock::time_point::max();  // when take_ended() has something next
};

}  // namespace framelane
