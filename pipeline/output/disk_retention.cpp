#include "pipeline/output/disk_retention.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <limits>
#include <system_error>

#include "pipeline/base/failure.hpp"
#include "pipeline/base/log.hpp"
#include "pipeline/base/redact.hpp"

namespace framelane {

namespace {

constexpr std::int64_t kEndless = std::numeric_limits<std::int64_t>::max();

std::int64_t bytes_in(std::uint64_t blocks, std::uint64_t block) {
  std::int64_t bytes = 0;
  return __builtin_mul_overflow(blocks, block, &bytes) ? kEndless : bytes;
}

}  // namespace

DiskSpace space_from(const struct statvfs& disk, dev_t device) {
  const DiskSpace space{.device = device,
                        .whole = bytes_in(disk.f_blocks, disk.f_frsize),
                        .free = bytes_in(disk.f_bavail, disk.f_frsize)};
  if (space.whole == 0 || (space.whole == kEndless && space.free != kEndless)) {
    throw IoError(IoFault::kIo, "the file system does not tell its size");
  }
  return space;
}

DiskSpace disk_space(const std::string& folder) {
  // One descriptor for both calls: something may be mounted there in between.
  const int fd = open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  struct stat place {};
  struct statvfs disk {};
  const bool told = fd >= 0 && fstat(fd, &place) == 0 && fstatvfs(fd, &disk) == 0;
  const int error = errno;
  if (fd >= 0) close(fd);
  if (!told) throw IoError(IoFault::kIo, std::generic_category().message(error));
  return space_from(disk, place.st_dev);
}

void DiskRetention::disk_is_full(Steady::time_point now) {
  settled_ = Steady::time_point();
  check_space();
  if (now < full_until_) return;
  full_until_ = now + kShowsWithin;
  hidden_.clear();
}

void DiskRetention::follow_clock(const ClockReading& now,
                                 std::span<OutputRetention* const> outputs) {
  const bool was_ahead = clock_.is_ahead();
  clock_.see(now);
  const auto by_age = std::ranges::find_if(
      outputs, [](const OutputRetention* output) { return output->keep().keep_age.has_value(); });
  if (by_age == outputs.end()) return;
  const std::string folder = redact((*by_age)->folder());
  if (was_ahead && !clock_.is_ahead()) {
    log::info("file system of {}: files are deleted by age as the clock says again", folder);
  } else if (clock_.jumped_now()) {
    log::warn(
        "file system of {}: the clock has jumped ahead by {:.1f} h; for an hour, files are "
        "deleted by age as if it had not: set it if it is wrong",
        folder, std::chrono::duration<double, std::chrono::hours::period>(clock_.ahead()).count());
  }
}

bool DiskRetention::turn(const ClockReading& clocks, std::span<OutputRetention* const> outputs) {
  const CallScope scope(calls_, OutputRetention::kCallLimit);
  follow_clock(clocks, outputs);
  const ClockReading now = clock_.corrected(clocks);
  if (!settled_) {
    settled_ = now.steady + kSpaceEvery;
    space_due_ = *settled_;
  }
  bool reading = false;
  bool deleting = false;
  bool known = true;
  for (OutputRetention* const output : outputs) {
    reading |= output->read_some(now, calls_);
    known &= output->known();
    if (output->known()) deleting |= output->delete_some(now, calls_);
  }
  // What age and size delete makes room, too. And what is the oldest of all is known when every
  // output's files are: from its first pass on, whatever the later ones do.
  if (deleting || !known) return true;
  if (make_room(now, outputs) || reading) return true;
  for (OutputRetention* const output : outputs) output->report(now);
  return false;
}

bool DiskRetention::make_room(const ClockReading& now, std::span<OutputRetention* const> outputs) {
  std::vector<OutputRetention*> sharing;
  std::ranges::copy_if(outputs, std::back_inserter(sharing),
                       [this](const OutputRetention* output) { return gives_room(*output); });
  if (sharing.empty() || now.steady < space_due_) return false;
  const std::string& folder = sharing.front()->folder();
  std::vector<OutputRetention*> lacking = sharing;
  try {
    if (delete_oldest(now, sharing, lacking)) return true;
    set_trouble(
        lacking.empty() ? "" : "less is free than min_free asks for, and nothing is left to delete",
        "the newest file of each output stays: make room, or lower min_free", folder);
  } catch (const IoError& error) {
    set_trouble("how much is free cannot be told: " + std::string(error.what()),
                "nothing is deleted for min_free until it can: check the disk or file server, or "
                "use size in keep",
                folder);
  }
  for (OutputRetention* const output : sharing) output->stats().recovered(RetentionFault::kSpace);
  for (OutputRetention* const output : lacking) {
    output->stats().failed(RetentionFault::kSpace, trouble_);
  }
  space_due_ = now.steady + kSpaceEvery;
  return false;
}

bool DiskRetention::delete_oldest(const ClockReading& now,
                                  std::span<OutputRetention* const> sharing,
                                  std::vector<OutputRetention*>& lacking) {
  DiskSpace space = measure(sharing);
  for (int deleted = 0;; ++deleted) {
    const std::int64_t hidden = hidden_bytes(now.steady);
    std::erase_if(lacking, [&](const OutputRetention* output) {
      return space.free >= output->keep().keep_free->of(space.whole) - hidden;
    });
    OutputRetention* owner = nullptr;
    const FileIndex::File* next = nullptr;
    for (OutputRetention* const output : lacking) {
      const FileIndex::File* const oldest = output->oldest(device_);
      if (oldest == nullptr || (next != nullptr && !is_older(*oldest, *next))) continue;
      owner = output;
      next = oldest;
    }
    if (next == nullptr) return false;
    if (deleted == OutputRetention::kDeletionsPerTurn) return true;
    const std::int64_t bytes = next->state.bytes;
    if (!owner->remove(*next, calls_)) continue;
    const std::int64_t free_before = space.free;
    space = measure(sharing);
    if (space.free - free_before < bytes / 2) {
      hidden_.push_back({now.steady + kShowsWithin, bytes});
    }
  }
}

DiskSpace DiskRetention::measure(std::span<OutputRetention* const> sharing) {
  std::optional<IoError> why_not;
  for (OutputRetention* const output : sharing) {
    calls_.arm(OutputRetention::kCallLimit);
    try {
      const DiskSpace space = space_of_(output->folder());
      if (space.device == device_) return space;
      why_not.emplace(IoFault::kIo, "another file system has been mounted there");
    } catch (const IoError& error) {
      if (!why_not) why_not = error;
    }
    output->look_again();  // it may be on another file system, or its folder be gone
  }
  throw IoError(why_not.value());
}

std::int64_t DiskRetention::hidden_bytes(Steady::time_point now) {
  while (!hidden_.empty() && hidden_.front().until <= now) hidden_.pop_front();
  std::int64_t bytes = 0;
  for (const Deleted& deleted : hidden_) bytes += deleted.bytes;
  return bytes;
}

void DiskRetention::set_trouble(const std::string& trouble, const std::string& remedy,
                                const std::string& folder) {
  if (trouble == trouble_) return;
  if (trouble.empty()) {
    log::info("file system of {}: enough is free again", redact(folder));
  } else {
    log::warn("file system of {}: {}; {}", redact(folder), trouble, remedy);
  }
  trouble_ = trouble;
}

DiskRetention::Steady::duration DiskRetention::idle_for(
    const ClockReading& clocks, std::span<OutputRetention* const> outputs) const {
  const ClockReading now = clock_.corrected(clocks);
  Steady::duration idle = OutputRetention::kPassEvery;
  for (const OutputRetention* const output : outputs) {
    idle = std::min(idle, output->idle_for(now));
    if (gives_room(*output)) idle = std::min(idle, space_due_ - now.steady);
  }
  return std::max<Steady::duration>(idle, std::chrono::milliseconds(1));
}

}  // namespace framelane
