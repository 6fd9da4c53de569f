#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/output/deletions.hpp"
#include "pipeline/output/hls_files.hpp"
#include "pipeline/output/hls_options.hpp"
#include "pipeline/output/media_playlist.hpp"
#include "pipeline/output/output_options.hpp"
#include "pipeline/output/place_lock.hpp"
#include "pipeline/output/rendition_group.hpp"

namespace framelane {

/// Writes one HLS playlist, and names, completes and removes the files of its segments. Lives as
/// long as its output, so that numbers never go back while that runs. What is incomplete has a name
/// that ends with ".tmp"; a playlist is replaced as a whole. Not thread-safe. Calls block as long
/// as the file system does, and throw IoError and DiskFull.
class PlaylistWriter {
 public:
  /// Throws FeedError(kConfiguration) for wrong options. `path` is the playlist's. `subject` begins
  /// its lines in the log. `renditions`, of which this playlist is one with that index, outlives
  /// it; null: it stands alone.
  PlaylistWriter(const OutputOptions& options, const std::string& path, const std::string& subject,
                 RenditionGroup* renditions = nullptr, std::size_t rendition = 0);
  ~PlaylistWriter();
  PlaylistWriter(const PlaylistWriter&) = delete;
  PlaylistWriter& operator=(const PlaylistWriter&) = delete;

  const HlsOptions& options() const { return hls_; }
  /// Of which this playlist is one; null if it stands alone.
  const RenditionGroup* renditions() const { return renditions_; }
  /// How far apart keyframes may be; 0: unknown.
  std::chrono::microseconds gop() const { return gop_; }

  /// The first part of begin_stretch(). A rendition does this before it asks begin_rendition().
  void open();
  /// True if the next stretch can begin with the rendition's segment of this slot.
  bool begin_rendition(std::int64_t slot);

  /// Before a stretch: segments that follow one another, all in one format. Makes and locks the
  /// folder. The first time the playlist that is there is continued; a new one begins with a number
  /// that no viewer has in a cache. Removes segments of earlier runs that are listed no more; with
  /// Existing::kRefuse it throws IoError where there is one.
  void begin_stretch();

  /// Where the next segment is written, and the header of a stretch of MP4.
  std::string segment_path() const { return temporary(segment_file()); }
  std::string init_path() const { return temporary(files_.header(init_number_)); }

  /// Longer than that no segment may get. Before the first of a playlist is complete there is no
  /// limit, unless the playlist promises independent segments.
  std::optional<std::chrono::microseconds> longest_segment() const;

  /// When the next segment's first picture was taken, as players are told: `taken`, or what another
  /// rendition has said before.
  std::chrono::system_clock::time_point time_of_segment(
      std::chrono::system_clock::time_point taken) const;

  /// The header is complete.
  void add_init();
  /// A segment is complete. `gap`: something is missing before it. `time`: of its first picture.
  void add_segment(std::chrono::microseconds duration, bool gap,
                   std::chrono::system_clock::time_point time);
  /// The same for a rendition that has nothing in this segment: its file is removed, and the
  /// playlist says that it is missing.
  void skip_segment();
  /// No picture of a rendition came in time for so many segments, of which none was begun: the
  /// playlist says that they are missing. If that goes on, the log says once what to do.
  void skip_segments(std::uint64_t count);
  /// The segment that was begun, and its header, will not be completed: their files are removed.
  /// False if there are none. Does not throw.
  bool discard_incomplete();
  /// Nothing follows.
  void end();

 private:
  static std::string temporary(const std::filesystem::path& file);

  std::uint64_t next_in_list() const { return list_ ? list_->next_number() : first_number_; }
  std::uint64_t next_number() const { return renditions_ ? number_ : next_in_list(); }
  /// The next one.
  std::filesystem::path segment_file() const { return files_.segment(next_number(), hls_.fmp4); }
  std::string uri_of(const std::filesystem::path& file) const;
  /// Gives a file its name. Throws IoError if another has it and must stay.
  void complete(const std::filesystem::path& file) const;
  [[noreturn]] void refuse(const std::filesystem::path& file) const;
  /// Without hls_base_url.
  std::string_view name_in(const std::string& uri) const;
  /// Takes out the segments whose files are gone, and those before them.
  void drop_lost();
  void read_playlist();
  /// Of a playlist that continues none.
  MediaPlaylist::Head new_head() const;
  /// Takes out so many segments at the front. Their files stay until the playlist on disk no longer
  /// lists them.
  void retire_first(std::size_t count);
  void retire(std::vector<PlaylistSegment> segments);
  /// Removes files of this playlist that it does not list, or refuses them. The first number then
  /// comes after all of them.
  void remove_leftovers();
  /// Makes the next segment the one that the renditions expect. Where segments are missing, the
  /// playlist says so.
  void catch_up_with_renditions();
  void write(bool ended);
  void remove_unlisted();
  /// Removes the file, if it is one of the playlist's.
  void remove(const std::string& uri);

  const std::string subject_;
  const Existing existing_;
  const HlsOptions hls_;
  const std::chrono::seconds least_target_;  // of EXT-X-TARGETDURATION
  const std::chrono::microseconds gop_;
  const std::filesystem::path path_;
  const HlsFiles files_;
  std::optional<PlaceLock> lock_;           // of the playlist
  std::optional<PlaceLock> segments_lock_;  // of segments with names of the user's
  RenditionGroup* const renditions_;
  const std::size_t rendition_;
  std::uint64_t number_ = 0;         // of a rendition's next segment
  std::uint64_t first_skipped_ = 0;  // of those that are counted
  std::uint64_t skipped_ = 0;        // for want of pictures
  int skips_ = 0;                    // times that this happened
  bool begun_ = false;
  std::uint64_t first_number_ = 0;
  std::optional<MediaPlaylist> list_;     // nothing before its first segment
  std::deque<PlaylistSegment> unlisted_;  // still there for slow readers, if old ones are deleted
  Deletions deletions_;
  std::string init_;               // URI of this stretch's header
  std::uint64_t init_number_ = 0;  // of the stretch's first segment
  bool new_stretch_ = false;
};

}  // namespace framelane
