#include "pipeline/processors.hpp"

extern "C" {
#include <libavutil/cpu.h>
}

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace framelane {
namespace {

/// Half the places of a ring of the default size.
constexpr int kLiveThreads = 4;

int count_processors() {
  int count = std::max(av_cpu_count(), 1);
  std::filesystem::path group;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    constexpr std::string_view kUnified = "0::/";
    if (line.starts_with(kUnified)) group = line.substr(kUnified.size());
  }
  // The limits of the groups around it hold as well. Inside a container the root is its own group.
  for (;; group = group.parent_path()) {
    std::ifstream file("/sys/fs/cgroup" / group / "cpu.max");
    std::string line;
    std::getline(file, line);
    count = std::min(count, processors_of_quota(line).value_or(count));
    if (group.empty()) return count;
  }
}

}  // namespace

int processors() {
  static const int count = count_processors();
  return count;
}

int codec_threads(bool live) {
  if (live) return std::min(processors(), kLiveThreads);
  return processors() < av_cpu_count() ? processors() : 0;
}

std::optional<int> processors_of_quota(std::string_view cpu_max) {
  std::istringstream fields{std::string(cpu_max)};
  double quota = 0;  // microseconds per period; the word "max" when there is no limit
  double period = 0;
  if (!(fields >> quota >> period) || quota <= 0 || period <= 0) return std::nullopt;
  return static_cast<int>(std::clamp(std::ceil(quota / period), 1.0, 65536.0));
}

}  // namespace framelane
