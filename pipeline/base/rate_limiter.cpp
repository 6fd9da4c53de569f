#include "pipeline/base/rate_limiter.hpp"

#include <algorithm>
#include <utility>

namespace framelane {

bool RateLimiter::admit(std::uint64_t key, int tag, std::string_view line, Clock::time_point now) {
  if (const auto known = lines_.find(key); known != lines_.end()) {
    ++known->second.repeats;
    return false;
  }
  if (lines_.size() >= kMaxLines) make_room(now);
  lines_.emplace(key, Line{tag, std::string(line), 0, now});
  next_end_ = std::min(next_end_, now + window_);
  return true;
}

void RateLimiter::make_room(Clock::time_point now) {
  const auto older = [](const auto& a, const auto& b) { return a.second.since < b.second.since; };
  const auto oldest = std::min_element(lines_.begin(), lines_.end(), older);
  if (oldest == lines_.end()) return;
  Line& line = oldest->second;
  if (line.repeats > 0) {
    evicted_.push_back({line.tag, std::move(line.text), line.repeats, now - line.since});
    next_end_ = now;
  }
  lines_.erase(oldest);
}

std::vector<RateLimiter::Repeats> RateLimiter::take_ended(Clock::time_point now) {
  if (now < next_end_) return {};
  std::vector<Repeats> ended = std::exchange(evicted_, {});
  next_end_ = Clock::time_point::max();
  for (auto entry = lines_.begin(); entry != lines_.end();) {
    Line& line = entry->second;
    if (now - line.since >= window_) {
      if (line.repeats == 0) {
        entry = lines_.erase(entry);
        continue;
      }
      ended.push_back({line.tag, line.text, std::exchange(line.repeats, 0), now - line.since});
      line.since = now;
    }
    next_end_ = std::min(next_end_, line.since + window_);
    ++entry;
  }
  return ended;
}

}  // namespace framelane
