#pragma once

#include <sys/statvfs.h>
#include <sys/types.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/av/interrupt.hpp"
#include "pipeline/base/clock_reading.hpp"
#include "pipeline/output/age_clock.hpp"
#include "pipeline/output/output_retention.hpp"

namespace framelane {

struct DiskSpace {
  dev_t device;
  std::int64_t whole;
  std::int64_t free;  ///< for users without privileges
};
/// What a file system says of its space. Throws IoError if it says that it has no blocks, as those
/// do that cannot tell (FUSE), or that it is endless but nearly full. Sizes that do not fit count
/// as the largest that does.
DiskSpace space_from(const struct statvfs& disk, dev_t device);
/// The space of the file system that `folder` is in. Throws IoError if it cannot be told. Blocks as
/// long as the file system does.
DiskSpace disk_space(const std::string& folder);
using SpaceOf = std::function<DiskSpace(const std::string& folder)>;

/// Deletes old files on one file system: for each output by age (AgeClock) and size, and for all
/// outputs with `keep_free` together, the oldest first, while too little is free. For that it
/// deletes only files of which it knows that they lie on the file system that it has measured. Each
/// turn does a part of what is due. Reads no clock. Not thread-safe, except calls().
class DiskRetention {
 public:
  using Steady = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kSpaceEvery{5};
  /// Some file systems show freed space only after a while (Btrfs at its next commit). For this
  /// long, what was deleted counts as free although it does not show.
  static constexpr std::chrono::seconds kShowsWithin{30};

  explicit DiskRetention(dev_t device, SpaceOf space_of = disk_space)
      : device_(device), space_of_(std::move(space_of)) {}

  /// Something was written: the space is measured in the next turn. For kSpaceEvery after the first
  /// turn that waits, since the outputs come one after the other, and the oldest file is that of
  /// all.
  void check_space() { space_due_ = std::min(space_due_, settled_.value_or(space_due_)); }
  /// The disk says that it is full: that waits no longer, and what does not show as free does not
  /// count. The latter goes for once in kShowsWithin: each output says it again and again until
  /// there is room, and what is deleted after the first time has to have time to show.
  void disk_is_full(Steady::time_point now);

  /// True if there is more to do at once.
  bool turn(const ClockReading& now, std::span<OutputRetention* const> outputs);
  /// How long nothing has to be done after a turn that returned false.
  Steady::duration idle_for(const ClockReading& now,
                            std::span<OutputRetention* const> outputs) const;

  /// Armed during calls into the file system. Any thread may ask it.
  const Interrupt& calls() const { return calls_; }
  Interrupt& calls() { return calls_; }

 private:
  void follow_clock(const ClockReading& now, std::span<OutputRetention* const> outputs);
  /// True if the output's files may go to make room here.
  bool gives_room(const OutputRetention& output) const {
    return output.keep().keep_free && output.device() == device_;
  }
  /// True if there is more to delete at once.
  bool make_room(const ClockReading& now, std::span<OutputRetention* const> outputs);
  /// As the first of these outputs can tell it whose folder is on this file system. Throws IoError
  /// if none can.
  DiskSpace measure(std::span<OutputRetention* const> sharing);
  /// Deletes files of `lacking` until enough is free for them, and removes outputs from it as that
  /// is so. True if there is more to delete at once.
  bool delete_oldest(const ClockReading& now, std::span<OutputRetention* const> sharing,
                     std::vector<OutputRetention*>& lacking);
  std::int64_t hidden_bytes(Steady::time_point now);
  /// What stands in the way of enough free space, or nothing. Logs it when it begins and ends.
  void set_trouble(const std::string& trouble, const std::string& remedy,
                   const std::string& folder);

  const dev_t device_;
  const SpaceOf space_of_;
  Interrupt calls_{std::stop_token()};  // times calls, and interrupts none
  AgeClock clock_;
  Steady::time_point space_due_;
  std::optional<Steady::time_point> settled_;  // kSpaceEvery after the first turn
  struct Deleted {
    Steady::time_point until;
    std::int64_t bytes;
  };
  std::deque<Deleted> hidden_;     // space that was freed and does not show yet
  Steady::time_point full_until_;  // a full disk has been heeded
  std::string trouble_;
};

}  // namespace framelane
