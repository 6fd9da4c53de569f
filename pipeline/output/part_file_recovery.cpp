#include "pipeline/output/part_file_recovery.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#include "pipeline/base/log.hpp"
#include "pipeline/base/redact.hpp"
#include "pipeline/output/container.hpp"
#include "pipeline/output/file_pattern.hpp"
#include "pipeline/output/part_file.hpp"

namespace framelane {

void recover_part_files(const OutputOptions& options, const std::string& feed,
                        const std::stop_token& stop) {
  const Container container = container_on_disk(options);
  if (container.kind != OutputKind::kFile) return;
  const FilePattern pattern(container.url);
  std::vector<std::filesystem::path> parts = pattern.part_files();
  std::sort(parts.begin(), parts.end());
  for (const std::filesystem::path& path : parts) {
    if (stop.stop_requested()) return;
    std::optional<PartFile> part = PartFile::adopt(path.string());
    if (!part) continue;  // somebody still writes it
    const std::string name = part->salvage(container, stop);
    std::error_code error;
    if (!name.empty()) {
      log::info("feed {}: output {}: recovered {}, which an earlier run left unfinished", feed,
                options.name, redact(name));
    } else if (!std::filesystem::exists(path, error)) {
      log::info("feed {}: output {}: removed {}, an earlier run's file with nothing to play", feed,
                options.name, redact(path.string()));
      pattern.remove_empty_directories(path);
    }
  }
}

}  // namespace framelane
