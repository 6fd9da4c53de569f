#include "pipeline/base/bus_guard.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>
#include <string>

#include "pipeline/base/failure.hpp"

namespace framelane {
namespace {

struct GuardedRange {
  std::atomic<std::uintptr_t> begin{0};  // 0: free. Written last, and cleared first
  std::atomic<std::uintptr_t> end{0};
  std::atomic<bool> spoiled{false};
};

// Static, and never destroyed: the handler may run at any time.
constinit std::array<GuardedRange, BusGuard::kMost> g_ranges;
std::mutex g_ranges_mutex;  // not for the handler
struct sigaction g_before;
std::uintptr_t g_page_mask = 0;
// The innermost of the thread. Read by the handler: so it needs no initialization, and no memory
// that is allocated when it is first used.
[[gnu::tls_model("initial-exec")]] constinit thread_local BusGuardScope* t_scope = nullptr;

/// Not mmap(): sanitizers wrap it in what a handler must not do.
bool map_zeros(std::uintptr_t begin, std::uintptr_t bytes) {
  return ::syscall(SYS_mmap, begin, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                   0) != -1;
}

/// Only what a signal handler may do: atomics without locks, and a system call.
bool mend(std::uintptr_t at, bool page_is_gone) {
  static_assert(std::atomic<std::uintptr_t>::is_always_lock_free);
  for (GuardedRange& range : g_ranges) {
    const std::uintptr_t begin = range.begin.load(std::memory_order_acquire);
    const std::uintptr_t end = range.end.load(std::memory_order_acquire);
    if (begin == 0 || at < begin || at >= end) continue;
    // Another thread may have put another range here meanwhile.
    if (range.begin.load(std::memory_order_relaxed) != begin) continue;
    range.spoiled.store(true, std::memory_order_relaxed);
    return map_zeros(at & g_page_mask, end - (at & g_page_mask));
  }
  if (t_scope == nullptr || !page_is_gone) return false;
  t_scope->spoil();
  return map_zeros(at & g_page_mask, ~g_page_mask + 1);
}

void on_bus_error(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  const bool mended =
      mend(reinterpret_cast<std::uintptr_t>(info->si_addr), info->si_code == BUS_ADRERR);
  errno = error;
  if (mended) return;
  if ((g_before.sa_flags & SA_SIGINFO) != 0) {
    g_before.sa_sigaction(signal, info, context);
  } else if (g_before.sa_handler != SIG_DFL && g_before.sa_handler != SIG_IGN) {
    g_before.sa_handler(signal);
  } else {
    // The instruction runs again, and the process dies of it, as without this handler.
    ::signal(SIGBUS, SIG_DFL);
    if (info->si_code <= 0) ::raise(signal);  // somebody sent it
  }
}

void install_handler() {
  g_page_mask = ~(static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE)) - 1);
  struct sigaction action {};
  action.sa_sigaction = &on_bus_error;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, &g_before);
}

void require_handler() {
  static std::once_flag installed;
  std::call_once(installed, install_handler);
}

}  // namespace

BusGuard::BusGuard(const std::uint8_t* data, std::size_t bytes) {
  require_handler();
  const std::lock_guard lock(g_ranges_mutex);
  const auto free =
      std::ranges::find_if(g_ranges, [](const GuardedRange& r) { return r.begin == 0; });
  if (free == g_ranges.end()) {
    throw FeedError(FeedFault::kMemory, "more than " + std::to_string(kMost) +
                                            " areas of shared memory are read at once");
  }
  slot_ = static_cast<std::size_t>(free - g_ranges.begin());
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  free->spoiled = false;
  free->end.store(begin + bytes, std::memory_order_release);
  free->begin.store(begin, std::memory_order_release);
}

BusGuard::~BusGuard() { g_ranges[slot_].begin = 0; }

const std::atomic<bool>& BusGuard::spoiled() const { return g_ranges[slot_].spoiled; }

BusGuardScope::BusGuardScope() : around_(t_scope) {
  require_handler();
  t_scope = this;
}

BusGuardScope::~BusGuardScope() {
  t_scope = around_;
  if (around_ != nullptr && spoiled()) around_->spoil();
}

}  // namespace framelane
