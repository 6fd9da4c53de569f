#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace framelane {

/// Lets the first of many equal lines through and sums up the rest: once a window has ended, how
/// often the line came in it. Keeps a bounded number of lines. Not thread-safe.
class RateLimiter {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kMaxLines = 256;

  explicit RateLimiter(Clock::duration window) : window_(window) {}

  /// True when the line that `key` stands for is to be written now; otherwise it has been counted.
  bool admit(std::uint64_t key, int level, std::string_view line, Clock::time_point now);

  struct Repeats {
    int level = 0;
    std::string line;  ///< as it was first written
    std::uint64_t times = 0;
    Clock::duration span{};
  };
  /// The repeats of windows that have ended by `now`, each once, in no order. A line that goes on
  /// repeating is summed up at the end of every window; one that did not repeat is forgotten.
  std::vector<Repeats> take_ended(Clock::time_point now);

 private:
  struct Line {
    int level = 0;
    std::string text;
    std::uint64_t repeats = 0;
    Clock::time_point since;
  };
  void make_room(Clock::time_point now);

  Clock::duration window_;
  std::unordered_map<std::uint64_t, Line> lines_;
  std::vector<Repeats> evicted_;
  Clock::time_point next_end_ = Clock::time_point::max();
};

}  // namespace framelane
