#include "bench/program.hpp"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "pipeline/stage/gpu.hpp"

namespace framelane::bench {

std::atomic<int> g_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);  // a signal's handler sets it

void catch_signals() {
  struct sigaction action {};
  action.sa_handler = [](int number) { g_signal = number; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int number : {SIGINT, SIGTERM}) sigaction(number, &action, nullptr);
  // A reader that stops after the first lines shall not keep us from writing the files.
  signal(SIGPIPE, SIG_IGN);
}

bool OutputFile::open() {
  if (path_.empty()) return true;
  file_.reset(std::fopen(path_.c_str(), "ae"));
  return file_ != nullptr || refuse();
}

bool OutputFile::write(const std::string& text) {
  if (path_.empty()) return true;
  struct stat status {};
  const int descriptor = fileno(file_.get());
  if (fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && ftruncate(descriptor, 0) != 0) {
    return refuse();
  }
  const bool written = std::fwrite(text.data(), 1, text.size(), file_.get()) == text.size();
  return (written && std::fflush(file_.get()) == 0) || refuse();
}

/// Always false. Requires errno.
bool OutputFile::refuse() const {
  std::fprintf(stderr, "framelane-bench: %s cannot be written: %s\n", path_.c_str(),
               std::strerror(errno));
  return false;
}

bool open_device(const DeviceChoice& device, Session& session) {
  session.cpu = make_cpu_device();
  if (device.kind == DeviceChoice::Kind::kCpu) {
    session.no_gpu = "the CPU alone was asked for (--device cpu)";
    return true;
  }
  GpuResult gpu = open_gpu(device.gpu.value_or(0), session.cpu);
  session.gpu = std::move(gpu.device);
  session.no_gpu = gpu.why;
  if (session.gpu != nullptr || device.kind == DeviceChoice::Kind::kAuto) return true;
  std::fprintf(stderr, "framelane-bench: --device: %s\n", gpu.why.c_str());
  return false;
}

std::string own_path() {
  std::string path(4096, '\0');
  path.resize(static_cast<std::size_t>(
      std::max<ssize_t>(readlink("/proc/self/exe", path.data(), path.size()), 0)));
  return path;
}

CLI::Option* add_scalar(CLI::App& app, const char* name, const ScalarType& type,
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

void add_times(CLI::App& app, Session& session, const char* seconds) {
  app.add_option("--seconds", session.seconds, seconds)
      ->capture_default_str()
      ->type_name("S")
      ->check(CLI::Range(0.0, 86400.0))
      ->check([](const std::string& text) {  // Range lets NaN pass
        return std::isnan(std::strtod(text.c_str(), nullptr)) ? text + " is no number" : "";
      });
  app.add_option("--rounds", session.rounds, "How often the contenders take turns")
      ->capture_default_str()
      ->type_name("N")
      ->check(CLI::Range(1, 1000));
}

void add_file(CLI::App& app, const char* name, std::string& path, const char* description) {
  app.add_option(name, path, description)->type_name("FILE")->check([](const std::string& text) {
    return text.empty() ? "a file is needed" : "";
  });
}

}  // namespace framelane::bench
