#include "daemon/status_line.hpp"

#include <fmt/core.h>
#include <systemd/sd-daemon.h>

#include <algorithm>
#include <utility>

namespace framelane {

std::string StatusLine::text(const std::vector<FeedView>& feeds, Clock::time_point now) {
  const auto up =
      std::ranges::count_if(feeds, [now](const auto& feed) { return is_up(feed, now); });
  std::string text =
      fmt::format("{} of {} feed{} up", up, feeds.size(), feeds.size() == 1 ? "" : "s");
  std::uint64_t came = 0;
  std::uint64_t dropped = 0;
  std::map<std::string, std::uint64_t> frames;
  for (const FeedView& feed : feeds) {
    const FeedStats::Ledger ledger = feed.stats->ledger();
    for (const FeedStats::EncodeLine& encode : ledger.encodes) {
      if (encode.stats->copy) continue;
      frames[feed.stats->feed()] = ledger.frames_in;
      for (const std::uint64_t count : encode.dropped) dropped += count;
    }
  }
  for (const auto& [name, count] : frames) {
    const auto before = frames_.find(name);
    // A feed that was removed and added again begins at 0.
    const bool continues = before != frames_.end() && before->second <= count;
    came += count - (continues ? before->second : 0);
  }
  const auto last = std::exchange(last_, now);
  frames_ = std::move(frames);
  if (frames_.empty()) return text;
  if (last != Clock::time_point() && now > last) {
    text += fmt::format(", {:.1f} frames/s", static_cast<double>(came) /
                                                 std::chrono::duration<double>(now - last).count());
  }
  return text + fmt::format(", {} frame{} dropped", dropped, dropped == 1 ? "" : "s");
}

void StatusLine::update(const std::vector<FeedView>& feeds, Clock::time_point now) {
  if (now - last_ < kEvery) return;
  sd_notifyf(0, "STATUS=%s", text(feeds, now).c_str());
}

}  // namespace framelane
