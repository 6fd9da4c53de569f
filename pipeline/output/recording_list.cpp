#include "pipeline/output/recording_list.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <set>
#include <system_error>
#include <utility>

#include "pipeline/base/failure.hpp"
#include "pipeline/base/redact.hpp"
#include "pipeline/output/file_pattern.hpp"
#include "pipeline/output/folder_walk.hpp"
#include "pipeline/output/open_beneath.hpp"

namespace framelane {
namespace {

using std::chrono::system_clock;

/// The local time may have been that of another time zone when a file got its name.
constexpr std::chrono::hours kZones{26};

system_clock::time_point changed_at(const struct stat& status) {
  return system_clock::time_point(std::chrono::duration_cast<system_clock::duration>(
      std::chrono::seconds(status.st_mtim.tv_sec) +
      std::chrono::nanoseconds(status.st_mtim.tv_nsec)));
}

/// Ends a reading also when this thread has worked on it for too long.
class WorkLimit {
 public:
  WorkLimit(const ReadingEnds& ends, std::chrono::nanoseconds most)
      : ends_(ends), until_(worked() + most) {}
  ReadingEnds reading_ends() {
    return [this] { return (reached_ = reached_ || worked() > until_) || ends_(); };
  }
  bool reached() const { return reached_; }

 private:
  static std::chrono::nanoseconds worked() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  }

  const ReadingEnds& ends_;
  const std::chrono::nanoseconds until_;
  bool reached_ = false;
};

/// Looks through one output's folders.
class Listing {
 public:
  Listing(const OutputOptions& output, const TimeSpan& span, RecordingCache& cache,
          const ReadingEnds& ends)
      : container_(container_of(output)),
        pattern_(container_.url),
        folder_(pattern_.fixed_folder()),
        span_(span),
        cache_(cache),
        ends_(ends) {}

  void walk(FolderWalk::Files kind) {
    FolderWalk walk(pattern_, kind);
    for (auto found = walk.next(); found != FolderWalk::Found::kEnd; found = walk.next()) {
      if (ends_()) throw IoError(IoFault::kTimeout, "nobody waits for it any more");
      if (found == FolderWalk::Found::kUnreadable) {
        throw IoError(IoFault::kIo, "cannot read " + redact(walk.path()) + ": " +
                                        std::generic_category().message(walk.error()));
      }
      if (found == FolderWalk::Found::kFile) look_at(walk.path(), kind);
    }
  }
  /// True if there is a file that ends before the span.
  bool earlier() const { return earlier_; }
  std::vector<Recording> take() {
    // A short one may end with the one before it, as far as their times tell.
    std::ranges::sort(found_, {}, [](const Recording& each) {
      return std::pair(each.times.end, each.times.begin);
    });
    return std::move(found_);
  }

 private:
  void look_at(const std::string& path, FolderWalk::Files kind) {
    const bool complete = kind == FolderWalk::Files::kComplete;
    const std::string name = complete ? path : path.substr(0, path.size() - kPartSuffix.size());
    const std::string file = name.substr(folder_.size());
    if (!pattern_.is_path(file)) return;  // there is no such day
    struct stat status {};
    if (lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return;
    const system_clock::time_point changed = changed_at(status);
    if (changed < span_.from) {
      earlier_ |= status.st_size > 0;
      return;
    }
    const auto named = pattern_.time_of(name, changed);
    if (named && *named > span_.to + kZones) return;
    if (names_.contains(file)) return;  // it has got its name meanwhile
    FileDescriptor opened = open_beneath(folder_, path.substr(folder_.size()));
    if (opened.get() < 0 || fstat(opened.get(), &status) != 0) return;
    const std::int64_t bytes = status.st_size;
    const RecordingCache::Key key{
        status.st_dev, status.st_ino, status.st_size,
        std::chrono::nanoseconds(changed_at(status).time_since_epoch()).count()};
    const auto known = cache_.find(key);
    const auto times = known ? known->times : read_times(opened, changed_at(status), name);
    if (!known) cache_.add(key, {times, std::nullopt});
    if (!times) return;
    earlier_ |= times->begin < span_.from;
    if (times->end < span_.from || times->begin >= span_.to) return;
    names_.insert(file);
    found_.push_back({file, *times, bytes, complete, key});
    if (found_.size() > kMostRecordings) {
      throw RecordingsRefused("too_large", "there are more than " +
                                               std::to_string(kMostRecordings) +
                                               " recordings; ask for a shorter time");
    }
  }

  /// Nothing if nothing in the file can be read.
  std::optional<RecordingTimes> read_times(const FileDescriptor& file,
                                           system_clock::time_point changed,
                                           const std::string& name) const {
    for (const auto purpose : {RecordingFile::For::kTimes, RecordingFile::For::kBegin}) {
      WorkLimit limit(ends_, kMostWork);
      try {
        FileDescriptor copy(fcntl(file.get(), F_DUPFD_CLOEXEC, 0));
        if (copy.get() < 0) throw IoError(IoFault::kIo, std::generic_category().message(errno));
        RecordingFile recording(std::move(copy), container_, purpose, limit.reading_ends());
        return recording.read_times(name, pattern_, changed);
      } catch (const IoError& error) {
        if (limit.reached()) continue;
        if (error.code() == IoFault::kDecode) break;
        throw IoError(error.code(), redact(name) + ": " + error.what());
      }
    }
    return std::nullopt;
  }

  const Container container_;
  const FilePattern pattern_;
  const std::string folder_;
  const TimeSpan span_;
  RecordingCache& cache_;
  const ReadingEnds& ends_;
  bool earlier_ = false;
  std::set<std::string> names_;
  std::vector<Recording> found_;
};

/// When a recording goes on that begins before the end of another one. Behind an outage it may
/// begin with the pictures before that (output.cpp), and hold the gap itself.
system_clock::time_point goes_on(const OutputOptions& output, const Recording& recording,
                                 system_clock::time_point covered, RecordingCache& cache,
                                 const ReadingEnds& ends) {
  if (recording.times.begin + overlap_tolerance(recording, recording) >= covered ||
      recording.times.end <= covered) {
    return covered;
  }
  RecordingCache::Next next{
      std::chrono::duration_cast<std::chrono::microseconds>(covered - recording.times.begin), {}};
  const auto known = cache.find(recording.key);
  if (known && known->next && known->next->after == next.after) {
    next = *known->next;
  } else {
    FileDescriptor file = open_recording(output, recording.file);
    if (file.get() < 0) return covered;
    WorkLimit limit(ends, kMostWork);
    try {
      RecordingFile opened(std::move(file), container_of(output), RecordingFile::For::kPackets,
                           limit.reading_ends());
      next.at = opened.next_after(next.after);
    } catch (const IoError& error) {
      if (error.code() != IoFault::kDecode && !limit.reached()) throw;
    }
    cache.add(recording.key, {recording.times, next});
  }
  return next.at ? recording.times.begin + *next.at : covered;
}

std::vector<TimeSpan> gaps_between(const OutputOptions& output,
                                   const std::vector<Recording>& recordings, bool earlier,
                                   const TimeSpan& span, system_clock::time_point now,
                                   RecordingCache& cache, const ReadingEnds& ends) {
  std::vector<TimeSpan> gaps;
  if (recordings.empty() && !earlier) return gaps;
  system_clock::time_point covered =
      earlier ? span.from : std::max(span.from, recordings.front().times.begin);
  for (const Recording& recording : recordings) {
    const auto begin =
        &recording == &recordings.front()
            ? recording.times.begin
            : std::max(recording.times.begin, goes_on(output, recording, covered, cache, ends));
    if (begin - covered > kGapTolerance) gaps.push_back({covered, std::min(begin, span.to)});
    covered = std::max(covered, recording.times.end);
  }
  if (std::min(span.to, now - kStillWritten) - covered > kGapTolerance) {
    gaps.push_back({covered, std::min(span.to, now)});
  }
  return gaps;
}

}  // namespace

std::optional<RecordingCache::Content> RecordingCache::find(const Key& key) {
  const std::lock_guard lock(mutex_);
  if (const auto known = recent_.find(key); known != recent_.end()) return known->second;
  const auto known = older_.find(key);
  if (known == older_.end()) return std::nullopt;
  const Content content = known->second;
  keep(key, content);
  return content;
}

void RecordingCache::add(const Key& key, const Content& content) {
  const std::lock_guard lock(mutex_);
  keep(key, content);
}

void RecordingCache::keep(const Key& key, const Content& content) {
  recent_.insert_or_assign(key, content);
  if (recent_.size() >= kLeast) older_ = std::exchange(recent_, {});
}

FileDescriptor open_recording(const OutputOptions& output, const std::string& file) {
  const FilePattern pattern(container_of(output).url);
  if (!pattern.is_path(file)) {
    errno = ENOENT;
    return FileDescriptor();
  }
  FileDescriptor opened = open_beneath(pattern.fixed_folder(), file);
  if (opened.get() < 0 && errno == ENOENT) {
    opened = open_beneath(pattern.fixed_folder(), file + std::string(kPartSuffix));
    // It may have got its name in between.
    if (opened.get() < 0) opened = open_beneath(pattern.fixed_folder(), file);
  }
  return opened;
}

RecordingList list_recordings(const OutputOptions& output, const TimeSpan& span,
                              system_clock::time_point now, RecordingCache& cache,
                              const ReadingEnds& ends) {
  Listing listing(output, span, cache, ends);
  // In this order, so that none is missed that gets its name meanwhile.
  listing.walk(FolderWalk::Files::kPart);
  listing.walk(FolderWalk::Files::kComplete);
  RecordingList list;
  list.recordings = listing.take();
  list.gaps = gaps_between(output, list.recordings, listing.earlier(), span, now, cache, ends);
  return list;
}

}  // namespace framelane
