#include "pipeline/output/retention.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <tuple>
#include <vector>

#include "pipeline/base/log.hpp"
#include "pipeline/base/redact.hpp"

namespace framelane {
namespace fs = std::filesystem;
namespace {

constexpr std::chrono::seconds kMostBetween{60};

}  // namespace

Undeletable enforce_retention(const FilePattern& pattern, const SegmentOptions& keep,
                              std::chrono::system_clock::time_point now,
                              const std::function<void()>& working) {
  Undeletable undeletable;
  if (!keep.keep_age && !keep.keep_bytes) return undeletable;
  const fs::file_time_type file_now = fs::file_time_type::clock::from_sys(now);
  struct File {
    fs::file_time_type time;
    std::uintmax_t bytes;
    fs::path path;
  };
  std::vector<File> files;
  std::uintmax_t total = 0;
  for (const fs::path& path : pattern.complete_files()) {
    working();
    std::error_code error;
    const auto time = fs::last_write_time(path, error);
    const auto bytes = error ? 0 : fs::file_size(path, error);
    if (error) continue;  // gone meanwhile
    files.push_back({time, bytes, path});
    total += bytes;
  }
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) {
    return std::tie(a.time, a.path) < std::tie(b.time, b.path);
  });
  if (!files.empty()) files.pop_back();

  for (const File& file : files) {
    const bool too_old = keep.keep_age && file_now - file.time > *keep.keep_age;
    const bool too_much =
        keep.keep_bytes &&
        total > static_cast<std::uintmax_t>(std::max<std::int64_t>(*keep.keep_bytes, 0));
    if (!too_old && !too_much) break;
    working();
    std::error_code error;
    fs::remove(file.path, error);
    if (error) {
      if (undeletable.files++ == 0) {
        undeletable.first = redact(file.path.string()) + ": " + error.message();
      }
      continue;
    }
    total -= file.bytes;
    pattern.remove_empty_directories(file.path);
  }
  return undeletable;
}

Retention::Retention(const FilePattern& pattern, const SegmentOptions& keep,
                     const std::string& subject)
    : pattern_(pattern), keep_(keep), faults_(subject + ": deleting old files") {}

bool Retention::due(std::chrono::steady_clock::time_point now) const {
  return now - enforced_at_ >= std::min(keep_.keep_age.value_or(kMostBetween), kMostBetween);
}

void Retention::enforce(const ClockReading& now, const std::function<void()>& working) {
  enforced_at_ = now.steady;
  const Undeletable left = enforce_retention(pattern_, keep_, now.wall, working);
  if (left.files == 0) {
    faults_.recovered();
    return;
  }
  faults_.failed("cannot delete " + left.first,
                 fmt::format("files that keep no longer allows, and are still there: {}; delete "
                             "them, or let this user write to their folder",
                             left.files),
                 now.steady);
}

}  // namespace framelane
