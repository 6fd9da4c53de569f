#include "pipeline/base/processors.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <exception>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace framelane {
namespace {

/// Half the places of a ring of the default size: each frame thread holds a frame.
constexpr int kLiveThreads = 4;

/// Calls `take` with the first line of `file` in each cgroup that this process is in: its own, and
/// all that contain it, because their limits hold as well. In a container the root is its own
/// group.
template <typename Take>
void for_each_limit(const char* file, Take take) {
  std::filesystem::path group;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    constexpr std::string_view kUnified = "0::/";
    if (line.starts_with(kUnified)) group = line.substr(kUnified.size());
  }
  for (;; group = group.parent_path()) {
    std::ifstream limit("/sys/fs/cgroup" / group / file);
    std::string line;
    std::getline(limit, line);
    take(line);
    if (group.empty()) return;
  }
}

/// How many processors this process may run on. Quotas of processor time are not counted in.
int allowed_processors() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) return std::max(CPU_COUNT(&allowed), 1);
  // It fails on machines of more than 1024 processors: cpu_set_t has no room for them.
  return std::max(static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)), 1);
}

int count_processors() {
  int count = allowed_processors();
  for_each_limit("cpu.max", [&count](const std::string& line) {
    count = std::min(count, processors_of_quota(line).value_or(count));
  });
  return count;
}

}  // namespace

int processors() {
  static const int count = count_processors();
  return count;
}

std::size_t machine_memory() {
  std::size_t bytes = static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
                      static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  for_each_limit("memory.max", [&bytes](const std::string& line) {
    bytes = std::min(bytes, bytes_of_limit(line).value_or(bytes));
  });
  return bytes;
}

int codec_threads(bool live) {
  if (live) return std::min(processors(), kLiveThreads);
  return processors() < allowed_processors() ? processors() : 0;
}

bool can_start_threads() {
  constexpr int kWanted = 16;
  std::mutex until_all_run;
  std::vector<std::jthread> threads;
  const std::lock_guard lock(until_all_run);  // released first
  try {
    for (int i = 0; i < kWanted; ++i) {
      threads.emplace_back([&until_all_run] { const std::lock_guard wait(until_all_run); });
    }
  } catch (const std::exception&) {  // no thread, or no memory to remember it
    return false;
  }
  return true;
}

std::optional<int> processors_of_quota(std::string_view cpu_max) {
  std::istringstream fields{std::string(cpu_max)};
  double quota = 0;  // microseconds per period; the word "max" when there is no limit
  double period = 0;
  if (!(fields >> quota >> period) || quota <= 0 || period <= 0) return std::nullopt;
  return static_cast<int>(std::clamp(std::ceil(quota / period), 1.0, 65536.0));
}

std::optional<std::size_t> bytes_of_limit(std::string_view memory_max) {
  std::size_t bytes = 0;  // the word "max" when there is no limit
  const char* const end = memory_max.data() + memory_max.size();
  const auto [after, error] = std::from_chars(memory_max.data(), end, bytes);
  if (error != std::errc{} || (after != end && *after != '\n')) return std::nullopt;
  return bytes;
}

}  // namespace framelane
