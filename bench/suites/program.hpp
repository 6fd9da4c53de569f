// What the commands of framelane-bench have in common. One thread.
#pragma once

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "bench/suites/turns.hpp"
#include "config/scalars.hpp"
#include "pipeline/stage/gpu.hpp"

namespace framelane::bench {

inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitConfiguration = 78;  // EX_CONFIG

inline std::atomic<int> g_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);  // a signal's handler sets it

/// The first one ends the measuring and shows what there is; a second one ends the process.
inline void catch_signals() {
  struct sigaction action {};
  action.sa_handler = [](int number) { g_signal = number; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int number : {SIGINT, SIGTERM}) sigaction(number, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);  // who reads only the first lines gets the files all the same
}

/// A file to be written when all is measured: opened before, so that a wrong name costs no wait,
/// and left as it is until then.
class OutputFile {
 public:
  explicit OutputFile(std::string path) : path_(std::move(path)) {}
  bool open() {
    if (path_.empty()) return true;
    file_.reset(std::fopen(path_.c_str(), "ae"));
    return file_ != nullptr || refuse();
  }
  bool write(const std::string& text) {
    if (path_.empty()) return true;
    struct stat status {};
    const int descriptor = fileno(file_.get());
    if (fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) &&
        ftruncate(descriptor, 0) != 0) {
      return refuse();
    }
    const bool written = std::fwrite(text.data(), 1, text.size(), file_.get()) == text.size();
    return (written && std::fflush(file_.get()) == 0) || refuse();
  }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  /// Always false. Requires errno.
  bool refuse() const {
    std::fprintf(stderr, "framelane-bench: %s cannot be written: %s\n", path_.c_str(),
                 std::strerror(errno));
    return false;
  }

  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
};

/// Whether the device that was asked for is there; `auto` does without a GPU.
inline bool open_device(const DeviceConfig& device, Session& session) {
  session.cpu = make_cpu_device();
  if (device.kind == DeviceConfig::Kind::kCpu) {
    session.no_gpu = "the CPU alone was asked for (--device cpu)";
    return true;
  }
  GpuResult gpu = open_gpu(device.index, session.cpu);
  session.gpu = std::move(gpu.device);
  session.no_gpu = gpu.why;
  if (session.gpu != nullptr || device.kind == DeviceConfig::Kind::kAuto) return true;
  std::fprintf(stderr, "framelane-bench: --device: %s\n", gpu.why.c_str());
  return false;
}

/// This program's file.
inline std::string own_path() {
  std::string path(4096, '\0');
  path.resize(static_cast<std::size_t>(
      std::max<ssize_t>(readlink("/proc/self/exe", path.data(), path.size()), 0)));
  return path;
}

/// An option whose value is read as the configuration reads it.
inline CLI::Option* add_scalar(CLI::App& app, const char* name, const ScalarType& type,
                               const char* description, const char* type_name,
                               std::function<void(const Value&)> take) {
  return app
      .add_option_function<std::string>(
          name,
          [&type, name, take = std::move(take)](const std::string& text) {
            Value value;
            if (!type.parse(text, value)) {
              throw CLI::ValidationError(name, text + " is not " + std::string(type.expected));
            }
            value.text = text;
            take(value);
          },
          description)
      ->type_name(type_name);
}

/// How long to measure, and in how many rounds.
inline void add_times(CLI::App& app, Session& session, const char* seconds) {
  app.add_option("--seconds", session.seconds, seconds)
      ->capture_default_str()
      ->type_name("S")
      ->check(CLI::Range(0.0, 86400.0))
      ->check([](const std::string& text) {  // which no range excludes
        return std::isnan(std::strtod(text.c_str(), nullptr)) ? text + " is no number" : "";
      });
  app.add_option("--rounds", session.rounds, "How often the contenders take turns")
      ->capture_default_str()
      ->type_name("N")
      ->check(CLI::Range(1, 1000));
}

/// A file to write to.
inline void add_file(CLI::App& app, const char* name, std::string& path, const char* description) {
  app.add_option(name, path, description)->type_name("FILE")->check([](const std::string& text) {
    return text.empty() ? "a file is needed" : "";
  });
}

/// `framelane tune`, and what follows it: the whole command. Returns the exit code.
int tune_cli(int argc, char** argv);

}  // namespace framelane::bench
