#include "pipeline/output/part_file_recovery.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "pipeline/base/log.hpp"
#include "pipeline/base/redact.hpp"

namespace framelane {

void PartFileRecovery::recover(const OutputOptions& options, const std::stop_token& stop) {
  const Container container = container_on_disk(options);
  if (container.kind != OutputKind::kFile) return;
  const FilePattern pattern(container.url);
  std::vector<std::filesystem::path> parts = pattern.part_files();
  std::sort(parts.begin(), parts.end());
  for (const std::filesystem::path& path : parts) {
    if (stop.stop_requested()) return;
    recover(path, container, pattern, stop);
  }
}

void PartFileRecovery::recover(const std::filesystem::path& path, const Container& container,
                               const FilePattern& pattern, const std::stop_token& stop) {
  std::optional<PartFile> part = PartFile::adopt(path.string());
  if (!part) return;  // somebody still writes it
  const PartFile::Salvage done = part->salvage(container, stop);
  note(path.string(), container, done);
  if (done.fate == PartFile::Fate::kNamed) {
    log::info("{}: recovered {}, which an earlier run left unfinished", subject_,
              redact(done.text));
  } else if (done.fate == PartFile::Fate::kRemoved) {
    log::info("{}: removed {}, which an earlier run left without anything in it", subject_,
              redact(path.string()));
    pattern.remove_empty_directories(path);
  }
}

void PartFileRecovery::salvage(PartFile& file, const Container& container) {
  const PartFile::Salvage done = file.salvage(container);
  note(file.path(), container, done);
  if (done.fate == PartFile::Fate::kNamed) {
    log::info("{}: completed {} as far as it was written", subject_, redact(done.text));
  }
}

void PartFileRecovery::retry(const Container& container) {
  for (const std::string& path : std::exchange(waiting_, {})) {
    std::optional<PartFile> part = PartFile::adopt(path);
    if (!part) continue;  // it is gone, or another process completes it
    const PartFile::Salvage done = part->salvage(container);
    if (done.fate == PartFile::Fate::kStays) {
      waiting_.push_back(path);  // it has been logged
      continue;
    }
    note(path, container, done);
    if (done.fate == PartFile::Fate::kNamed) {
      log::info("{}: completed {}, which had to wait", subject_, redact(done.text));
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
