#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace framelane {

/// Lets the process go on when the owner of shared memory truncates it while it is read here, which
/// the kernel answers with SIGBUS: the handler of that signal maps pages of zeros over the rest of
/// the range, and marks it. Reading goes on at once, on whatever thread, in our code or a codec's.
///
/// The first guard or scope installs the handler, for the process; for addresses that nobody guards
/// it does what was done before. Any thread.
class BusGuard {
 public:
  /// Ranges that can be guarded at once: sources have one as a rule, and more while their producer
  /// replaces it.
  static constexpr int kMost = 256;

  /// A mapping that is only read. Throws FeedError(kMemory) if kMost are guarded.
  BusGuard(const std::uint8_t* data, std::size_t bytes);
  /// Before the range is unmapped.
  ~BusGuard();
  BusGuard(const BusGuard&) = delete;
  BusGuard& operator=(const BusGuard&) = delete;

  /// True once some of it was taken away. Stays where it is while the guard lives.
  const std::atomic<bool>& spoiled() const;

 private:
  std::size_t slot_;
};

/// The same for files that a library maps, as FreeType and HarfBuzz map fonts, at addresses that
/// nobody here knows: while it lives, a page of any mapping that its file no longer has reads as
/// zeros, on the thread that made it. What that thread has made of the mapped files is of no use
/// once it is spoiled. One inside another counts for both.
class BusGuardScope {
 public:
  BusGuardScope();
  ~BusGuardScope();
  BusGuardScope(const BusGuardScope&) = delete;
  BusGuardScope& operator=(const BusGuardScope&) = delete;

  /// True once something was taken away. Of the thread that made it.
  bool spoiled() const { return spoiled_.load(std::memory_order_relaxed); }
  /// For the signal handler.
  void spoil() { spoiled_.store(true, std::memory_order_relaxed); }

 private:
  BusGuardScope* const around_;  // the scope in which this one is, or null
  std::atomic<bool> spoiled_{false};
};

}  // namespace framelane
