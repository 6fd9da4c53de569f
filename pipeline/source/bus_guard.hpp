#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace framelane {

/// Lets the process go on when the owner of shared memory truncates it while it is read here, which
/// the kernel answers with SIGBUS: the handler of that signal maps pages of zeros over the rest of
/// the range, and marks it. Reading goes on at once, on whatever thread, in our code or a codec's.
///
/// The first guard installs the handler, for the process; for addresses that nobody guards it does
/// what was done before. Any thread.
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

}  // namespace framelane
