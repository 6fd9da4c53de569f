#include "pipeline/output/part_file_recovery.hpp"

#include <dirent.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "pipeline/base/log.hpp"
#include "pipeline/base/redact.hpp"

namespace framelane {

/// When looking into files has to end.
struct PartFileRecovery::Limit {
  std::stop_token stop;
  std::chrono::steady_clock::time_point deadline;
  bool over() const {
    return stop.stop_requested() || std::chrono::steady_clock::now() >= deadline;
  }
  /// Of what begins now.
  static Limit of(std::chrono::milliseconds time, const std::stop_token& stop);
};

/// A later look for files, which may take several calls.
struct PartFileRecovery::Search {
  explicit Search(const std::string& url) : pattern(url) {}
  const FilePattern pattern;
  FolderWalk walk{pattern, FolderWalk::Files::kPart};
  std::vector<std::string> unreadable{};
};

namespace {

using std::chrono::milliseconds;

/// The output's packets wait for so long at most while files are tried again.
constexpr std::chrono::seconds kRetry{1};
/// A look that begins after the stop. The stop leaves an output 1.5 s: half a second of them is for
/// what is queued, and this may be needed twice.
constexpr milliseconds kAfterStop{250};

/// Nothing if the file is gone, or somebody still writes it.
std::optional<PartFile::Salvage> salvage_left(const std::string& path, const Container& container,
                                              const std::stop_token& stop,
                                              std::chrono::steady_clock::time_point deadline) {
  try {
    std::optional<PartFile> part = PartFile::adopt(path);
    if (!part) return std::nullopt;
    return part->salvage(container, stop, deadline);
  } catch (const std::exception& error) {
    return PartFile::Salvage{PartFile::Fate::kStays, error.what()};
  }
}

/// Also true if there is no such folder.
bool can_be_read(const std::string& folder) {
  DIR* const opened = opendir(folder.empty() ? "." : folder.c_str());
  if (opened == nullptr) return is_no_folder(errno);
  closedir(opened);
  return true;
}

}  // namespace

PartFileRecovery::Limit PartFileRecovery::Limit::of(milliseconds time,
                                                    const std::stop_token& stop) {
  const auto now = std::chrono::steady_clock::now();
  if (stop.stop_requested()) return {{}, now + std::min(time, kAfterStop)};
  return {stop, now + time};
}

PartFileRecovery::PartFileRecovery(std::string subject, milliseconds look,
                                   std::function<void(const std::string&)> on_named)
    : subject_(std::move(subject)), look_(look), on_named_(std::move(on_named)) {}

PartFileRecovery::~PartFileRecovery() = default;

void PartFileRecovery::recover(const OutputOptions& options, Interrupt& calls, milliseconds call,
                               const std::stop_token& stop) {
  const Container container = container_on_disk(options);
  if (container.kind != OutputKind::kFile) return;
  const FilePattern pattern(container.url);
  std::vector<UnreadableFolder> unreadable;
  const std::vector<std::string> parts = find_part_files(pattern, unreadable);
  for (const UnreadableFolder& folder : unreadable) {
    note_unreadable(folder);
    unreadable_.push_back(folder.path);
  }
  const Limit limit = Limit::of(look_, stop);
  for (const std::string& path : parts) {
    if (stop.stop_requested()) return;
    if (limit.over()) {
      waiting_.push_back(path);
      continue;
    }
    calls.arm(call);
    const std::optional<PartFile::Salvage> done =
        salvage_left(path, container, limit.stop, limit.deadline);
    if (done) note_recovered(path, container, pattern, *done);
  }
}

void PartFileRecovery::note_recovered(const std::string& path, const Container& container,
                                      const FilePattern& pattern, const PartFile::Salvage& done) {
  note(path, container, done);
  if (done.fate == PartFile::Fate::kNamed) {
    log::info("{}: recovered {}, which an earlier run left unfinished", subject_,
              redact(done.text));
  } else if (done.fate == PartFile::Fate::kRemoved) {
    log::info("{}: removed {}, which an earlier run left without anything in it", subject_,
              redact(path));
    pattern.remove_empty_directories(path);
  }
}

PartFile::Fate PartFileRecovery::salvage(PartFile& file, const Container& container,
                                         const std::stop_token& stop) {
  const Limit limit = Limit::of(look_, stop);
  const PartFile::Salvage done = file.salvage(container, limit.stop, limit.deadline);
  note(file.path(), container, done);
  if (done.fate == PartFile::Fate::kNamed) {
    log::info("{}: completed {} as far as it was written", subject_, redact(done.text));
  }
  return done.fate;
}

void PartFileRecovery::retry(const Container& container, const std::stop_token& stop) {
  const Limit limit = Limit::of(kRetry, stop);
  if (!search_ && search_is_due()) search_ = std::make_unique<Search>(container.url);
  if (search_) search(container, limit);
  // One that has to wait on goes to the back, so that it does not keep the others waiting.
  for (std::size_t left = waiting_.size(); left > 0 && !limit.over(); --left) {
    const std::string path = std::move(waiting_.front());
    waiting_.pop_front();
    const std::optional<PartFile::Salvage> done =
        salvage_left(path, container, limit.stop, limit.deadline);
    if (!done) continue;
    if (done->fate == PartFile::Fate::kStays) {
      waiting_.push_back(path);  // it has been logged
      continue;
    }
    note(path, container, *done);
    if (done->fate == PartFile::Fate::kNamed) {
      log::info("{}: completed {}, which had to wait", subject_, redact(done->text));
    }
  }
}

bool PartFileRecovery::search_is_due() const {
  return std::ranges::any_of(unreadable_, can_be_read);
}

void PartFileRecovery::search(const Container& container, const Limit& limit) {
  FolderWalk& walk = search_->walk;
  const auto was_unreadable = [this](const std::string& path) {
    return std::ranges::any_of(unreadable_,
                               [&](const std::string& folder) { return path.starts_with(folder); });
  };
  while (!limit.over()) {
    const FolderWalk::Found found = walk.next();
    if (found == FolderWalk::Found::kEnd) {
      unreadable_ = std::move(search_->unreadable);
      search_.reset();
      return;
    }
    const std::string& path = walk.path();
    std::error_code gone;
    if (found == FolderWalk::Found::kUnreadable) {
      if (!was_unreadable(path)) note_unreadable({path, walk.error()});
      search_->unreadable.push_back(path);
    } else if (found == FolderWalk::Found::kFile && was_unreadable(path) &&
               std::ranges::find(waiting_, path) == waiting_.end() &&
               std::filesystem::is_regular_file(path, gone)) {
      const std::optional<PartFile::Salvage> done =
          salvage_left(path, container, limit.stop, limit.deadline);
      if (done) note_recovered(path, container, search_->pattern, *done);
    }
  }
}

void PartFileRecovery::note_unreadable(const UnreadableFolder& folder) const {
  log::warn(
      "{}: cannot look for files that an earlier run left unfinished in {}: {}; let this user "
      "read it",
      subject_, redact(folder.path), std::generic_category().message(folder.error));
}

void PartFileRecovery::note(const std::string& part, const Container& container,
                            const PartFile::Salvage& done) {
  if (done.fate == PartFile::Fate::kNamed) {
    if (on_named_) on_named_(done.text);
  } else if (done.fate == PartFile::Fate::kDamaged) {
    log::warn("{}: {} stays as it is: nothing in it can be read as {}; repair or remove it",
              subject_, redact(part), container.muxer ? container.muxer->name : "a recording");
  } else if (done.fate == PartFile::Fate::kStays) {
    log::warn("{}: {} keeps this name for now: {}", subject_, redact(part), done.text);
    waiting_.push_back(part);
  }
}

}  // namespace framelane
