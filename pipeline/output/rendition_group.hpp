#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/output/master_playlist.hpp"
#include "pipeline/output/place_lock.hpp"
#include "pipeline/packets/packet_queue.hpp"

namespace framelane {

/// What the renditions of one output with several encodes share: where their segments are cut, the
/// numbers of these, and the master playlist. Each rendition is written by an Output of its own.
///
/// The feed's line of time is cut into slots of one segment each. A segment of any rendition is one
/// slot, and its number follows from the slot alone: segments of the same number show the same time
/// in all renditions, also after one of them was down. Where one rendition begins anew, all have
/// an EXT-X-DISCONTINUITY, so that the discontinuity sequence is the same too. For this a rendition
/// begins at a segment that none has published yet.
///
/// Any thread. open() and published() block as long as the file system does, the others do not.
class RenditionGroup {
 public:
  /// `master` is the path of the master playlist. `segment`: see slot_length().
  RenditionGroup(std::filesystem::path master, std::chrono::microseconds segment);

  /// The shortest time from `hls_time` on that is a multiple of the time between keyframes.
  static std::chrono::microseconds slot_length(std::chrono::microseconds hls_time,
                                               std::chrono::microseconds gop);

  /// Adds a rendition, whose media playlist is at `path`, and returns its index. `sound`: it is the
  /// sound of all others; of them there is one at most. Before the threads start.
  std::size_t add(const std::filesystem::path& path, bool sound = false);

  std::chrono::microseconds segment() const { return segment_; }
  /// The slot of a picture that is shown then, on the feed's line of time.
  std::int64_t slot_at(std::chrono::microseconds shown) const;
  /// True if a keyframe begins its slot: it is the slot's first frame, and none before it was lost
  /// while its encode was down.
  bool begins_slot(const MediaPacket& keyframe) const;

  /// Before a rendition begins: keeps others out of the master playlist's place. The first time it
  /// looks at the playlists that an earlier run has left, whose numbers then go on. Throws IoError.
  void open(std::size_t rendition);
  /// A rendition's writer is gone. With the last one the place is free again.
  void leave(std::size_t rendition);
  /// A rendition is to begin, with this slot. Returns the number of its segment, or nothing if the
  /// rendition cannot begin there; it then asks again at the next slot. `own_next`: the least
  /// number that it can write.
  std::optional<std::uint64_t> begin(std::size_t rendition, std::int64_t slot,
                                     std::uint64_t own_next);
  /// The discontinuity sequence number of a segment.
  std::uint64_t section_of(std::uint64_t number) const;
  /// When the first picture of a segment was taken: as the rendition says that asks first.
  std::chrono::system_clock::time_point time_of(std::uint64_t number,
                                                std::chrono::system_clock::time_point taken);

  /// What a rendition is from now on. Its `uri` and rates are not looked at.
  void describe(std::size_t rendition, HlsVariant format);
  /// The rendition has nothing to write, until it is described: its source has no sound.
  void leave_out(std::size_t rendition);
  /// A segment stands in its rendition's playlist. Writes the master playlist, if it is due: when
  /// every rendition has a segment (or one has several: another may be down), and when what it says
  /// is no longer true. Throws IoError and DiskFull.
  void published(std::size_t rendition, std::uint64_t number, std::int64_t bytes,
                 std::chrono::microseconds duration, std::chrono::microseconds target);

 private:
  struct Rendition {
    std::filesystem::path path;
    HlsVariant variant;
    SegmentRates rates;
    std::uint64_t segments = 0;  // published
    std::uint64_t last = 0;      // number of the last of them
    bool sound = false;
    bool left_out = false;
    bool begun = false;
    bool writes = false;  // between open() and leave()
  };

  void read_numbers();
  /// What the master playlist has to say now; nothing if it need not be written. Requires mutex_.
  std::optional<std::vector<HlsVariant>> due() const;

  const std::filesystem::path master_;
  const std::chrono::microseconds segment_;

  std::mutex file_mutex_;  // held while the master playlist is read or written; before mutex_
  std::optional<PlaceLock> lock_;
  bool opened_ = false;

  mutable std::mutex mutex_;  // guards all that follows
  std::vector<Rendition> renditions_;
  std::vector<HlsVariant> written_;  // what the master playlist says
  std::uint64_t next_number_ = 0;    // behind what earlier runs have left
  std::uint64_t next_section_ = 0;
  std::optional<std::int64_t> first_slot_number_;  // the number of slot 0, which may be negative
  std::uint64_t first_number_ = 0;  // this run's first; sections_ has earlier ones too
  std::uint64_t unpublished_ = 0;   // the least number that nobody has published, nor later ones
  std::map<std::uint64_t, std::uint64_t> sections_;  // of the numbers at which sections begin
  std::map<std::uint64_t, std::chrono::system_clock::time_point> times_;
};

}  // namespace framelane
