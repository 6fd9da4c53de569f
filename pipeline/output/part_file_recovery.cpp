#include "pipeline/output/part_file_recovery.hpp"

#include <algorithm>
#include <exception>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "pipeline/base/log.hpp"
#include "pipeline/base/redact.hpp"
#include "pipeline/output/folder_walk.hpp"

namespace framelane {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// The output's packets wait for so long at most while files are tried again.
constexpr std::chrono::seconds kRetry{1};
/// A look that begins after the stop. The stop leaves an output 1.5 s: half a second of them is for
/// what is queued, and this may be needed twice.
constexpr milliseconds kAfterStop{250};

/// When looking into files has to end.
struct Limit {
  std::stop_token stop;
  Clock::time_point deadline;
  bool over() const { return stop.stop_requested() || Clock::now() >= deadline; }
};

/// Of what begins now.
Limit limit_of(milliseconds time, const std::stop_token& stop) {
  if (stop.stop_requested()) return {{}, Clock::now() + std::min(time, kAfterStop)};
  return {stop, Clock::now() + time};
}

/// Nothing if the file is gone, or somebody still writes it.
std::optional<PartFile::Salvage> salvage_left(const std::string& path, const Container& container,
                                              const Limit& limit) {
  try {
    std::optional<PartFile> part = PartFile::adopt(path);
    if (!part) return std::nullopt;
    return part->salvage(container, limit.stop, limit.deadline);
  } catch (const std::exception& error) {
    return PartFile::Salvage{PartFile::Fate::kStays, error.what()};
  }
}

}  // namespace

void PartFileRecovery::recover(const OutputOptions& options, Interrupt& calls, milliseconds call,
                               const std::stop_token& stop) {
  const Container container = container_on_disk(options);
  if (container.kind != OutputKind::kFile) return;
  const FilePattern pattern(container.url);
  std::vector<UnreadableFolder> unreadable;
  const std::vector<std::string> parts = find_part_files(pattern, unreadable);
  for (const UnreadableFolder& folder : unreadable) {
    log::warn(
        "{}: cannot look for files that an earlier run left unfinished in {}: {}; let this "
        "user read it",
        subject_, redact(folder.path), std::generic_category().message(folder.error));
  }
  const Limit limit = limit_of(look_, stop);
  for (const std::string& path : parts) {
    if (stop.stop_requested()) return;
    if (limit.over()) {
      waiting_.push_back(path);
      continue;
    }
    calls.arm(call);
    const std::optional<PartFile::Salvage> done = salvage_left(path, container, limit);
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

void PartFileRecovery::salvage(PartFile& file, const Container& container,
                               const std::stop_token& stop) {
  const Limit limit = limit_of(look_, stop);
  const PartFile::Salvage done = file.salvage(container, limit.stop, limit.deadline);
  note(file.path(), container, done);
  if (done.fate == PartFile::Fate::kNamed) {
    log::info("{}: completed {} as far as it was written", subject_, redact(done.text));
  }
}

void PartFileRecovery::retry(const Container& container, const std::stop_token& stop) {
  const Limit limit = limit_of(kRetry, stop);
  // One that has to wait on goes to the back, so that it does not keep the others waiting.
  for (std::size_t left = waiting_.size(); left > 0 && !limit.over(); --left) {
    const std::string path = std::move(waiting_.front());
    waiting_.pop_front();
    const std::optional<PartFile::Salvage> done = salvage_left(path, container, limit);
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

void PartFileRecovery::note(const std::string& part, const Container& container,
                            const PartFile::Salvage& done) {
  if (done.fate == PartFile::Fate::kDamaged) {
    log::warn("{}: {} stays as it is: nothing in it can be read as {}; repair or remove it",
              subject_, redact(part), container.muxer ? container.muxer->name : "a recording");
  } else if (done.fate == PartFile::Fate::kStays) {
    log::warn("{}: {} keeps this name for now: {}", subject_, redact(part), done.text);
    waiting_.push_back(part);
  }
}

}  // namespace framelane
