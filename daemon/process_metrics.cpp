#include "daemon/process_metrics.hpp"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <limits>
#include <memory>
#include <sstream>
#include <string>

namespace framelane {
namespace {

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

double open_files() {
  struct Closer {
    void operator()(DIR* directory) const { closedir(directory); }
  };
  const std::unique_ptr<DIR, Closer> directory(opendir("/proc/self/fd"));
  if (!directory) return 0;
  int entries = 0;
  while (readdir(directory.get()) != nullptr) ++entries;
  return entries - 3;  // without ".", ".." and the descriptor that reads the folder
}

/// Unix time at which the process started: the time of the boot plus the ticks since then.
double read_start_time() {
  std::ifstream stat_file("/proc/self/stat");
  std::string stat((std::istreambuf_iterator<char>(stat_file)), {});
  // Field 2 is the name in brackets, which may contain anything. Field 3 follows the last ')'.
  std::istringstream fields(stat.substr(stat.rfind(')') + 1));
  std::string field;
  for (int i = 3; i < 22; ++i) fields >> field;
  double ticks = 0;
  fields >> ticks;
  std::ifstream system("/proc/stat");
  double boot = 0;
  for (std::string word; system >> word;) {
    if (word == "btime") system >> boot;
  }
  return boot + ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace

void add_process_metrics(MetricPage& page) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  page.counter("process_cpu_seconds_total", "CPU time used, in user and system mode.")
      .add({}, seconds(usage.ru_utime) + seconds(usage.ru_stime));

  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  page.gauge("process_open_fds", "Open file descriptors.").add({}, open_files());
  page.gauge("process_max_fds", "Maximum number of open file descriptors.")
      .add({}, files.rlim_cur == RLIM_INFINITY ? std::numeric_limits<double>::infinity()
                                               : static_cast<double>(files.rlim_cur));

  double virtual_pages = 0;
  double resident_pages = 0;
  std::ifstream("/proc/self/statm") >> virtual_pages >> resident_pages;
  const auto page_size = static_cast<double>(sysconf(_SC_PAGESIZE));
  page.gauge("process_virtual_memory_bytes", "Virtual memory size.")
      .add({}, virtual_pages * page_size);
  page.gauge("process_resident_memory_bytes", "Resident memory size.")
      .add({}, resident_pages * page_size);

  static const double start_time = read_start_time();
  page.gauge("process_start_time_seconds", "Start of the process, in seconds since the epoch.")
      .add({}, start_time);
}

}  // namespace framelane
