#include "pipeline/output/media_playlist.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <ctime>
#include <utility>

#include "pipeline/base/utc_time.hpp"

namespace framelane {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::system_clock;

/// Longer segments and larger targets are damage.
constexpr std::uint64_t kLargestSeconds = 1'000'000;

std::optional<std::uint64_t> parse_number(std::string_view text, std::uint64_t largest) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number > largest) return {};
  return number;
}

/// "DURATION,TITLE". Exact to the microsecond, as text() writes it.
std::optional<microseconds> parse_duration(std::string_view text) {
  const std::size_t comma = text.find(',');
  if (comma == text.npos) return {};
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + comma, value);
  if (error != std::errc() || end != text.data() + comma) return {};
  if (!(value >= 0 && value <= static_cast<double>(kLargestSeconds))) return {};
  return microseconds(std::llround(value * 1e6));
}

/// The URI of an EXT-X-MAP that has no other attribute.
std::optional<std::string> parse_map(std::string_view text) {
  constexpr std::string_view kBegin = "URI=\"";
  if (!text.starts_with(kBegin) || !text.ends_with('"') || text.size() <= kBegin.size() + 1) {
    return {};
  }
  return std::string(text.substr(kBegin.size(), text.size() - kBegin.size() - 1));
}

bool take(std::string_view& line, std::string_view tag) {
  if (!line.starts_with(tag)) return false;
  line.remove_prefix(tag.size());
  return true;
}

}  // namespace

std::optional<system_clock::time_point> parse_date_time(std::string_view text) {
  constexpr std::string_view kShape = "dddd-dd-ddTdd:dd:dd.dddZ";
  if (text.size() != kShape.size()) return {};
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (kShape[i] == 'd' ? !digit : text[i] != kShape[i]) return {};
  }
  const auto number = [text](std::size_t at, std::size_t count) {
    return static_cast<int>(*parse_number(text.substr(at, count), 9999));
  };
  std::tm utc{};
  utc.tm_year = number(0, 4) - 1900;
  utc.tm_mon = number(5, 2) - 1;
  utc.tm_mday = number(8, 2);
  utc.tm_hour = number(11, 2);
  utc.tm_min = number(14, 2);
  utc.tm_sec = number(17, 2);
  return system_clock::from_time_t(timegm(&utc)) + milliseconds(number(20, 3));
}

std::optional<MediaPlaylist> MediaPlaylist::parse(std::string_view text) {
  if (!text.ends_with('\n')) return {};  // its end is missing
  MediaPlaylist list(Head{}, 0);
  PlaylistSegment next;
  bool first = true;
  bool has_duration = false;
  std::string init;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size() + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (std::exchange(first, false)) {
      if (line != "#EXTM3U") return {};
    } else if (line.empty()) {
      continue;
    } else if (line[0] != '#') {
      if (!has_duration) return {};
      next.uri = line;
      next.init = init;
      list.head_.init_segments |= !init.empty();
      list.segments_.push_back(std::exchange(next, {}));
      list.begun_ = true;
      has_duration = false;
    } else if (take(line, "#EXT-X-TARGETDURATION:")) {
      const auto target = parse_number(line, kLargestSeconds);
      if (!target) return {};
      list.head_.target_duration = seconds(*target);
    } else if (take(line, "#EXT-X-MEDIA-SEQUENCE:")) {
      const auto number = parse_number(line, kLargestSegmentNumber);
      if (!number) return {};
      list.first_number_ = *number;
    } else if (take(line, "#EXT-X-DISCONTINUITY-SEQUENCE:")) {
      const auto number = parse_number(line, kLargestSegmentNumber);
      if (!number) return {};
      list.first_section_ = *number;
    } else if (take(line, "#EXT-X-PLAYLIST-TYPE:")) {
      list.head_.event = line == "EVENT";
    } else if (take(line, "#EXTINF:")) {
      const auto duration = parse_duration(line);
      if (!duration) return {};
      next.duration = *duration;
      has_duration = true;
    } else if (take(line, "#EXT-X-PROGRAM-DATE-TIME:")) {
      next.time = parse_date_time(line);  // FFmpeg's has a time zone: it is left out
    } else if (take(line, "#EXT-X-MAP:")) {
      const auto uri = parse_map(line);
      if (!uri) return {};
      init = *uri;
    } else if (line == "#EXT-X-DISCONTINUITY") {
      next.discontinuity = true;
    } else if (line == "#EXT-X-GAP") {
      next.gap = true;
    } else if (line == "#EXT-X-INDEPENDENT-SEGMENTS") {
      list.head_.independent_segments = true;
    } else if (line == "#EXT-X-ENDLIST") {
      list.ended_ = true;
    } else if (line.starts_with("#EXT") && !line.starts_with("#EXT-X-VERSION:") &&
               !line.starts_with("#EXT-X-ALLOW-CACHE:")) {
      return {};  // a tag that would be lost
    }
  }
  if (first || list.head_.target_duration == seconds(0)) return {};
  return list;
}

std::string MediaPlaylist::text(bool ended) const {
  // EXT-X-MAP needs version 6, EXTINF with a fraction 3 (section 7).
  std::string text = fmt::format("#EXTM3U\n#EXT-X-VERSION:{}\n#EXT-X-TARGETDURATION:{}\n",
                                 head_.init_segments ? 6 : 3, head_.target_duration.count());
  text += fmt::format("#EXT-X-MEDIA-SEQUENCE:{}\n", first_number_);
  if (first_section_ > 0) text += fmt::format("#EXT-X-DISCONTINUITY-SEQUENCE:{}\n", first_section_);
  if (head_.event) text += "#EXT-X-PLAYLIST-TYPE:EVENT\n";
  if (head_.independent_segments) text += "#EXT-X-INDEPENDENT-SEGMENTS\n";
  std::string_view init;
  for (const PlaylistSegment& segment : segments_) {
    if (segment.discontinuity) text += "#EXT-X-DISCONTINUITY\n";
    if (segment.init != init) text += fmt::format("#EXT-X-MAP:URI=\"{}\"\n", segment.init);
    init = segment.init;
    if (segment.time) {
      text += fmt::format("#EXT-X-PROGRAM-DATE-TIME:{}\n", utc_time(*segment.time));
    }
    if (segment.gap) text += "#EXT-X-GAP\n";
    text += fmt::format("#EXTINF:{}.{:06},\n{}\n", segment.duration.count() / 1'000'000,
                        segment.duration.count() % 1'000'000, segment.uri);
  }
  if (ended) text += "#EXT-X-ENDLIST\n";
  return text;
}

std::optional<microseconds> MediaPlaylist::longest_segment() const {
  if (head_.target_duration == seconds(0)) return {};
  return longest_segment(head_.target_duration);
}

microseconds MediaPlaylist::longest_segment(seconds target_duration) {
  return target_duration + milliseconds(499);
}

seconds MediaPlaylist::target_for(microseconds duration) {
  return std::chrono::floor<seconds>(duration + milliseconds(500));
}

std::uint64_t MediaPlaylist::section() const {
  const auto begun = std::ranges::count(segments_, true, &PlaylistSegment::discontinuity);
  return first_section_ + static_cast<std::uint64_t>(begun);
}

std::vector<PlaylistSegment> MediaPlaylist::add(PlaylistSegment segment, std::size_t most) {
  // Nobody has read what would be before the first segment of all.
  if (segments_.empty() && !begun_) segment.discontinuity = false;
  begun_ = true;
  segments_.push_back(std::move(segment));
  return drop_first(most > 0 && segments_.size() > most ? segments_.size() - most : 0);
}

std::vector<PlaylistSegment> MediaPlaylist::drop_first(std::size_t count) {
  std::vector<PlaylistSegment> gone;
  for (; count > 0; --count) {
    // The tag goes with its segment, so that what follows is one section later (6.2.2).
    if (segments_.front().discontinuity) ++first_section_;
    gone.push_back(std::move(segments_.front()));
    segments_.pop_front();
    ++first_number_;
  }
  return gone;
}

std::vector<PlaylistSegment> MediaPlaylist::go_on_at(std::uint64_t number, std::uint64_t section) {
  std::vector<PlaylistSegment> gone = drop_first(segments_.size());
  first_number_ = number;
  first_section_ = section;
  begun_ = false;
  return gone;
}

}  // namespace framelane
