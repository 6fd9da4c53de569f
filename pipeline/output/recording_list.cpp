#include "pipeline/output/recording_list.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
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
    std::ranges::sort(found_, {}, [](const Recording& each) { return each.times.end; });
    return std::move(found_);
  }

 private:
  void look_at(const std::string& path, FolderWalk::Files kind) {
    const bool complete = kind == FolderWalk::Files::kComplete;
    const std::string name = complete ? path : path.substr(0, path.size() - kPartSuffix.size());
    struct stat status {};
    if (lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return;
    const system_clock::time_point changed = changed_at(status);
    if (changed < span_.from) {
      earlier_ |= status.st_size > 0;
      return;
    }
    const auto named = pattern_.time_of(name, changed);
    if (named && *named > span_.to + kZones) return;
    const std::string file = name.substr(folder_.size());
    if (names_.contains(file)) return;  // it has got its name meanwhile
    FileDescriptor opened = open_beneath(folder_, path.substr(folder_.size()));
    if (opened.get() < 0 || fstat(opened.get(), &status) != 0) return;
    const std::int64_t bytes = status.st_size;
    const RecordingCache::Content content = content_of(std::move(opened), status, name);
    if (!content) return;
    earlier_ |= content->begin < span_.from;
    if (content->end < span_.from || content->begin >= span_.to) return;
    names_.insert(file);
    found_.push_back({file, *content, bytes, complete});
    if (found_.size() > kMostRecordings) {
      throw RecordingsRefused("too_large", "there are more than " +
                                               std::to_string(kMostRecordings) +
                                               " recordings; ask for a shorter time");
    }
  }

  RecordingCache::Content content_of(FileDescriptor file, const struct stat& status,
                                     const std::string& name) {
    const RecordingCache::Key key{
        status.st_dev, status.st_ino, status.st_size,
        std::chrono::nanoseconds(changed_at(status).time_since_epoch()).count()};
    if (const auto known = cache_.find(key)) return *known;
    RecordingCache::Content content;
    try {
      RecordingFile recording(std::move(file), container_, RecordingFile::For::kTimes, ends_);
      content = recording.read_times(name, pattern_, changed_at(status));
    } catch (const IoError& error) {
      if (error.code() != IoFault::kDecode) throw;
    }
    cache_.add(key, content);
    return content;
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
                                 system_clock::time_point covered, const ReadingEnds& ends) {
  if (recording.times.begin + overlap_tolerance(recording, recording) >= covered ||
      recording.times.end <= covered) {
    return covered;
  }
  FileDescriptor file = open_recording(output, recording.file);
  if (file.get() < 0) return covered;
  try {
    RecordingFile opened(std::move(file), container_of(output), RecordingFile::For::kPackets, ends);
    const auto next = opened.next_after(
        std::chrono::duration_cast<std::chrono::microseconds>(covered - recording.times.begin));
    return next ? recording.times.begin + *next : covered;
  } catch (const IoError& error) {
    if (error.code() != IoFault::kDecode) throw;
    return covered;
  }
}

std::vector<TimeSpan> gaps_between(const OutputOptions& output,
                                   const std::vector<Recording>& recordings, bool earlier,
                                   const TimeSpan& span, system_clock::time_point now,
                                   const ReadingEnds& ends) {
  std::vector<TimeSpan> gaps;
  if (recordings.empty() && !earlier) return gaps;
  system_clock::time_point covered =
      earlier ? span.from : std::max(span.from, recordings.front().times.begin);
  for (const Recording& recording : recordings) {
    const auto begin =
        &recording == &recordings.front()
            ? recording.times.begin
            : std::max(recording.times.begin, goes_on(output, recording, covered, ends));
    if (begin - covered > kGapTolerance) gaps.push_back({covered, std::min(begin, span.to)});
    covered = std::max(covered, recording.times.end);
  }
  if (std::min(span.to, now - kStillWritten) - covered > kGapTolerance) {
    gaps.push_back({covered, std::min(span.to, now)});
  }
  return gaps;
}

}  // namespace

std::optional<RecordingCache::Content> RecordingCache::find(const Key& key) const {
  const std::lock_guard lock(mutex_);
  const auto known = known_.find(key);
  if (known == known_.end()) return std::nullopt;
  return std::optional<Content>(std::in_place, known->second);
}

void RecordingCache::add(const Key& key, const Content& content) {
  const std::lock_guard lock(mutex_);
  if (known_.size() >= kMost) known_.clear();
  known_.insert_or_assign(key, content);
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
  list.gaps = gaps_between(output, list.recordings, listing.earlier(), span, now, ends);
  return list;
}

}  // namespace framelane
