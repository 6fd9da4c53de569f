#include "daemon/signals.hpp"

#include <unistd.h>

#include <csignal>
#include <ctime>

namespace framelane {
namespace {

sigset_t handled_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGHUP);
  return set;
}

// Set once, by the thread that waits for signals.
bool g_next_ends_process = false;

extern "C" void end_at_once(int signal) { _exit(128 + signal); }

}  // namespace

void block_signals() {
  const sigset_t set = handled_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  // A closed pipe or a file size limit must be an error of write() and must not end the process.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

std::optional<int> wait_signal(std::chrono::milliseconds timeout) {
  const sigset_t set = handled_signals();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(timeout);
  timespec wait{};
  wait.tv_sec = seconds.count();
  wait.tv_nsec = std::chrono::nanoseconds(timeout - seconds).count();
  const int signal = sigtimedwait(&set, nullptr, &wait);
  if (signal <= 0) return std::nullopt;
  // While sigtimedwait waits, it receives the signal, and the handler is not called.
  if (g_next_ends_process && signal != SIGHUP) end_at_once(signal);
  return signal;
}

void second_signal_ends_process() {
  g_next_ends_process = true;
  struct sigaction action {};
  action.sa_handler = end_at_once;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace framelane
