#include "pipeline/output/output_retention.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "pipeline/base/failure.hpp"
#include "pipeline/base/log.hpp"
#include "pipeline/base/redact.hpp"

namespace framelane {
namespace {

namespace fs = std::filesystem;
using WallClock = std::chrono::system_clock;

constexpr int kPassShare = 50;

WallClock::time_point time_of(const timespec& time) {
  return WallClock::time_point(std::chrono::duration_cast<WallClock::duration>(
      std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec)));
}

/// A path that can be looked at.
std::string shown(const fs::path& folder) { return folder.empty() ? "." : folder.string(); }

/// What a file's name stands for now.
struct Look {
  int error = 0;                           // errno's
  std::optional<FileIndex::State> file{};  // nothing if it is no plain file
};

Look look_at(const std::string& path, dev_t usual_device) {
  struct stat status {};
  // A link is nobody's recording, and to delete it makes no room.
  if (lstat(path.c_str(), &status) != 0) return {.error = errno};
  if (!S_ISREG(status.st_mode)) return {};
  dev_t device = status.st_dev;
  if (device != usual_device) {
    // Overlayfs gives a file another device than the folder whose space it takes.
    struct stat folder {};
    if (stat(shown(fs::path(path).parent_path()).c_str(), &folder) != 0) return {.error = errno};
    device = folder.st_dev;
  }
  return {.file = FileIndex::State{time_of(status.st_mtim), status.st_size, device}};
}

std::string with_reason(const std::string& path, int error) {
  return redact(path.empty() ? "." : path) + ": " + std::generic_category().message(error);
}

}  // namespace

OutputRetention::OutputRetention(const FilePattern& pattern, const SegmentOptions& keep,
                                 const std::string& subject, std::shared_ptr<RetentionStats> stats)
    : pattern_(pattern),
      keep_(keep),
      stats_(std::move(stats)),
      listing_faults_(subject + ": looking for old files"),
      deletion_faults_(subject + ": deleting old files") {}

bool OutputRetention::locate() {
  fs::path folder = fs::path(pattern_.fixed_folder()).parent_path();  // without the last '/'
  if (folder_.empty()) folder_ = shown(folder);
  struct stat status {};
  while (stat(shown(folder).c_str(), &status) != 0) {
    // Only what does not exist is on the file system of the folder above. One that does not answer
    // must not be taken for that.
    if (!is_no_folder(errno) || folder.empty() || folder == "/") return false;
    folder = folder.parent_path();
  }
  folder_ = shown(folder);
  if (std::exchange(device_, status.st_dev) == status.st_dev) return false;
  files_.clear();
  known_ = false;
  return true;
}

void OutputRetention::completed(const std::string& path, Interrupt& calls) {
  calls.arm(kCallLimit);
  examine(path);
}

void OutputRetention::examine(const std::string& path) {
  ++work_.examined;
  const Look look = look_at(path, device_);
  if (look.file) {
    files_.add(path, *look.file);
  } else if (look.error != 0 && look.error != ENOENT) {
    note_unreadable(path, look.error);
  }
}

bool OutputRetention::read_some(const ClockReading& now, Interrupt& calls) {
  if (!walk_) {
    if (now.steady < pass_due_) return false;
    pass_begun_ = now.steady;
    pass_due_ = Steady::time_point::max();
    unreadable_.clear();
    first_unreadable_.clear();
    calls.arm(kCallLimit);
    locate();
    files_.begin_pass();
    walk_.emplace(pattern_, FolderWalk::Files::kComplete);
  }
  for (int i = 0; i < kEntriesPerTurn; ++i) {
    calls.arm(kCallLimit);
    ++work_.entries;
    switch (walk_->next()) {
      case FolderWalk::Found::kFile:
        if (!files_.mark_seen(walk_->path())) examine(walk_->path());
        break;
      case FolderWalk::Found::kUnreadable:
        note_unreadable(walk_->path(), walk_->error());
        break;
      case FolderWalk::Found::kNothing:
        break;
      case FolderWalk::Found::kEnd:
        calls.arm(kCallLimit);
        end_pass(now);
        return pass_due_ <= now.steady;
    }
  }
  return true;
}

void OutputRetention::note_unreadable(const std::string& path, int error) {
  const std::string reason = "cannot read " + with_reason(path, error);
  stats_->failed(RetentionFault::kList, reason);
  if (first_unreadable_.empty()) first_unreadable_ = reason;
  unreadable_.push_back(path);
}

void OutputRetention::end_pass(const ClockReading& now) {
  walk_.reset();
  // The pass may have seen files of both file systems.
  if (locate()) return look_again();
  // What is in a folder that cannot be read is still there, as far as anybody knows.
  files_.forget_unseen([this](std::string_view path) {
    return std::ranges::any_of(
        unreadable_, [path](const std::string& place) { return path.starts_with(place); });
  });
  // Deleting these is tried again.
  files_.put_back_all();
  first_undeletable_.clear();
  known_ = true;
  report_due_ = true;
  const Steady::duration every =
      std::max<Steady::duration>(std::min(keep_.keep_age.value_or(kPassEvery), kPassEvery),
                                 kPassShare * (now.steady - pass_begun_));
  pass_due_ = std::min(pass_due_, now.steady + every);  // look_again() may have come meanwhile
}

bool OutputRetention::too_many(const ClockReading& now) const {
  const FileIndex::File* const oldest = files_.oldest();
  if (oldest == nullptr) return false;
  return (keep_.keep_age && now.wall - oldest->state.changed > *keep_.keep_age) ||
         (keep_.keep_bytes && files_.bytes() > *keep_.keep_bytes);
}

bool OutputRetention::delete_some(const ClockReading& now, Interrupt& calls) {
  for (int i = 0; too_many(now); ++i) {
    if (i == kDeletionsPerTurn) return true;
    remove(*files_.oldest(), calls);
  }
  return false;
}

bool OutputRetention::remove(const FileIndex::File& file, Interrupt& calls) {
  const std::string path = file.path;
  const FileIndex::File* const next = files_.next(file);
  const bool last_in_folder =
      next == nullptr || fs::path(path).parent_path() != fs::path(next->path).parent_path();
  calls.arm(kCallLimit);
  Look look = look_at(path, device_);
  if (look.file && *look.file != file.state) {
    files_.add(path, *look.file);
    return false;
  }
  if (look.file) {
    calls.arm(kCallLimit);
    ++work_.deletions;
    if (unlink(path.c_str()) != 0) look = {.error = errno};
  }
  const bool deleted = look.file.has_value();
  if (look.error != 0 && look.error != ENOENT) {
    const std::string reason = with_reason(path, look.error);
    stats_->failed(RetentionFault::kDelete, "cannot delete " + reason);
    if (first_undeletable_.empty()) first_undeletable_ = reason;
    report_due_ = true;
    files_.put_aside(file);
    return false;
  }
  files_.remove(path);
  if (last_in_folder) pattern_.remove_empty_directories(path);
  return deleted;
}

void OutputRetention::report(const ClockReading& now) {
  if (!std::exchange(report_due_, false)) return;
  if (first_unreadable_.empty()) {
    stats_->recovered(RetentionFault::kList);
    listing_faults_.recovered();
  } else {
    listing_faults_.failed(fault_code(RetentionFault::kList), first_unreadable_,
                           "what is in there is neither counted nor deleted until this user may "
                           "read it; such places: " +
                               std::to_string(unreadable_.size()),
                           now.steady);
  }
  if (files_.aside() == 0) {
    stats_->recovered(RetentionFault::kDelete);
    deletion_faults_.recovered();
  } else {
    deletion_faults_.failed(
        fault_code(RetentionFault::kDelete), "cannot delete " + first_undeletable_,
        "files that keep no longer allows, and are still there: " + std::to_string(files_.aside()) +
            "; delete them, or let this user write to their folder",
        now.steady);
  }
}

OutputRetention::Steady::duration OutputRetention::idle_for(const ClockReading& now) const {
  Steady::duration idle = kPassEvery;
  if (!walk_) idle = std::min<Steady::duration>(idle, pass_due_ - now.steady);
  if (const FileIndex::File* const oldest = files_.oldest(); oldest != nullptr && keep_.keep_age) {
    idle = std::min<Steady::duration>(idle, oldest->state.changed + *keep_.keep_age - now.wall);
  }
  return std::max<Steady::duration>(idle, std::chrono::milliseconds(1));
}

}  // namespace framelane
