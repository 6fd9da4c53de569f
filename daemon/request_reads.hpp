#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace framelane {

/// Reads files for requests, from disks and file servers that may not answer: each read has a
/// thread of its own, which is left behind if it does not come to an end. Any thread.
class RequestReads {
 public:
  static constexpr std::chrono::seconds kPatience{3};
  /// So many reads may be under way, those that are stuck among them.
  static constexpr std::size_t kMost = 32;
  /// And so many in one place.
  static constexpr std::size_t kMostOfPlace = 4;

  using Read = std::function<std::optional<std::string>()>;

  explicit RequestReads(std::chrono::milliseconds patience = kPatience) : patience_(patience) {}

  /// What `read` returns, which may block for any time and shares the ownership of what it uses.
  /// `place` is where it reads, a folder. Blocks for the patience at most, also for other reads to
  /// end. Throws RequestError (503) if it takes longer, and at once if a read is stuck in the same
  /// place; and what `read` throws.
  std::optional<std::string> read(const std::string& place, Read read);

 private:
  struct Place {
    std::size_t reads = 0;
    std::size_t stuck = 0;
  };
  /// What is under way. It outlives this object, as long as a thread is stuck.
  struct Places {
    std::mutex mutex;  // guards what follows
    std::condition_variable ended;
    std::map<std::string, Place> places;
    std::size_t reads = 0;
  };
  class Turn;

  const std::chrono::milliseconds patience_;
  const std::shared_ptr<Places> places_ = std::make_shared<Places>();
};

}  // namespace framelane
