#include "daemon/signals.hpp"

#include <unistd.h>

#include <condition_variable>
#include <csignal>
#include <ctime>
#include <mutex>

namespace framelane {
namespace {

sigset_t stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

sigset_t handled_signals() {
  sigset_t set = stop_signals();
  sigaddset(&set, SIGHUP);
  sigaddset(&set, SIGUSR1);
  return set;
}

/// Unless somebody handles it, as a profiler does.
void ignore_signal(int signal) {
  struct sigaction action {};
  if (sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_DFL) {
    std::signal(signal, SIG_IGN);
  }
}

// Set once, by the thread that waits for signals.
bool g_next_ends_process = false;

// Set before the signals that call stop_at_once are let in.
int g_stop_status = 0;

extern "C" void end_at_once(int signal) { _exit(128 + signal); }
extern "C" void stop_at_once(int /*signal*/) { _exit(g_stop_status); }

/// Lets SIGINT and SIGTERM into this thread.
void handle_stops(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  const sigset_t set = stop_signals();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace

void block_signals() {
  const sigset_t set = handled_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  // A closed pipe or a file size limit must be an error of write() and must not end the process.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  for (const int signal : {SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGPOLL, SIGPWR}) {
    ignore_signal(signal);
  }
  for (int signal = SIGRTMIN; signal <= SIGRTMAX; ++signal) ignore_signal(signal);
}

// A thread of its own, since the signals have to stay blocked in all others, and in those that they
// start.
StopsAtOnce::StopsAtOnce(std::optional<int> status)
    : thread_([status](const std::stop_token& stop) {
        g_stop_status = status.value_or(0);
        handle_stops(status ? stop_at_once : end_at_once);
        std::mutex mutex;
        std::unique_lock lock(mutex);
        std::condition_variable_any().wait(lock, stop, [] { return false; });
      }) {}

StopsAtOnce::~StopsAtOnce() = default;

std::optional<int> wait_signal(std::chrono::milliseconds timeout) {
  const sigset_t set = handled_signals();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(timeout);
  timespec wait{};
  wait.tv_sec = seconds.count();
  wait.tv_nsec = std::chrono::nanoseconds(timeout - seconds).count();
  const int signal = sigtimedwait(&set, nullptr, &wait);
  if (signal <= 0) return std::nullopt;
  // While sigtimedwait waits, it receives the signal, and the handler is not called.
  if (g_next_ends_process && signal != SIGHUP && signal != SIGUSR1) end_at_once(signal);
  return signal;
}

void second_signal_ends_process() {
  g_next_ends_process = true;
  handle_stops(end_at_once);
}

}  // namespace framelane
