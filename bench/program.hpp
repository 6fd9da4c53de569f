// What the two commands of framelane-bench, `bench` and `tune`, have in common. One thread.
#pragma once

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "bench/harness/turns.hpp"
#include "config/scalars.hpp"

namespace framelane::bench {

inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitConfiguration = 78;  // EX_CONFIG

/// The signal that asked this program to end, or 0.
extern std::atomic<int> g_signal;

/// From now on the first SIGINT or SIGTERM sets g_signal: measuring stops and the results so
/// far are shown. A second one ends the process. SIGPIPE is ignored.
void catch_signals();

/// A file that is written when all is measured. It is opened before, so that a wrong name is
/// noticed at once, and its old content stays until there is a new one.
class OutputFile {
 public:
  /// An empty path: there is no such file, and the calls below do nothing.
  explicit OutputFile(std::string path) : path_(std::move(path)) {}
  /// Each returns false and prints the reason if it fails.
  bool open();
  bool write(const std::string& text);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  bool refuse() const;

  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
};

/// Gives the session the devices that were asked for. False, with the reason on standard error,
/// where there is no such GPU; `auto` does without one.
bool open_device(const DeviceChoice& device, Session& session);

/// This program's file.
std::string own_path();

/// An option whose value is read as in the configuration.
CLI::Option* add_scalar(CLI::App& app, const char* name, const ScalarType& type,
                        const char* description, const char* type_name,
                        std::function<void(const Value&)> take);
/// --seconds and --rounds.
void add_times(CLI::App& app, Session& session, const char* seconds);
/// An option that names a file to write.
void add_file(CLI::App& app, const char* name, std::string& path, const char* description);

/// `framelane tune`, with what follows it: the whole command. Returns the exit code.
int tune_cli(int argc, char** argv);

}  // namespace framelane::bench
