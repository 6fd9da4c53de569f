#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace framelane {

/// No segment has a larger number: one a second for thirty million years.
inline constexpr std::uint64_t kLargestSegmentNumber = 1'000'000'000'000'000;

/// One segment of a media playlist, with the tags before it (RFC 8216, 4.3.2).
struct PlaylistSegment {
  std::string uri;
  std::chrono::microseconds duration{0};
  bool discontinuity = false;  ///< between it and the segment before
  std::string init{};          ///< URI of its EXT-X-MAP; empty: it needs none
  std::optional<std::chrono::system_clock::time_point> time{};  ///< of its first picture
  bool gap = false;  ///< there is no such file: players go on behind it, or elsewhere (EXT-X-GAP)
};

/// What an HLS media playlist says (RFC 8216), and how it goes on: segments come at the end and
/// leave at the front, and the numbers of what has left are counted. Touches no file and reads no
/// clock. Not thread-safe.
class MediaPlaylist {
 public:
  /// What stays the same as long as anybody reads the playlist (6.2.1).
  struct Head {
    std::chrono::seconds target_duration{0};  ///< 0: not known before the next segment
    bool independent_segments = false;
    bool init_segments = false;  ///< its segments have an EXT-X-MAP
    bool event = false;          ///< no segment leaves it
  };

  MediaPlaylist(Head head, std::uint64_t first_number) : head_(head), first_number_(first_number) {}

  /// Reads what text() wrote. Nothing if the text is no media playlist that can be continued: it is
  /// damaged, has tags that framelane does not write, or its numbers leave no room for more.
  static std::optional<MediaPlaylist> parse(std::string_view text);

  /// `ended`: nothing follows.
  std::string text(bool ended) const;

  /// True if the text that was read says that nothing follows. Its segments must not go on.
  bool ended() const { return ended_; }
  const Head& head() const { return head_; }
  const std::deque<PlaylistSegment>& segments() const { return segments_; }
  /// The number of the next segment.
  std::uint64_t next_number() const { return first_number_ + segments_.size(); }

  /// The number of the last segment's section, which EXT-X-DISCONTINUITY begins.
  std::uint64_t section() const;

  /// Replaces what may only change while nobody writes the playlist.
  void set_head(Head head) { head_ = head; }
  /// The longest segment that target_duration allows: it counts rounded to the nearest second
  /// (4.3.3.1). Nothing as long as that is not known.
  std::optional<std::chrono::microseconds> longest_segment() const;
  static std::chrono::microseconds longest_segment(std::chrono::seconds target_duration);
  /// The least target that allows a segment of this length.
  static std::chrono::seconds target_for(std::chrono::microseconds duration);

  /// Adds a segment and takes out those that are then too many, which are returned, oldest first.
  /// `most` 0: all stay.
  std::vector<PlaylistSegment> add(PlaylistSegment segment, std::size_t most);
  /// Takes out so many segments at the front, which are returned, oldest first.
  std::vector<PlaylistSegment> drop_first(std::size_t count);
  /// Takes out all segments, which are returned. The next one gets this number, in this section.
  std::vector<PlaylistSegment> go_on_at(std::uint64_t number, std::uint64_t section);

 private:
  Head head_;
  std::uint64_t first_number_;       // EXT-X-MEDIA-SEQUENCE
  std::uint64_t first_section_ = 0;  // EXT-X-DISCONTINUITY-SEQUENCE
  std::deque<PlaylistSegment> segments_;
  bool begun_ = false;  // it has had a segment
  bool ended_ = false;
};

/// Reads an EXT-X-PROGRAM-DATE-TIME that utc_time() wrote.
std::optional<std::chrono::system_clock::time_point> parse_date_time(std::string_view text);

}  // namespace framelane
