#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <vector>

#include "pipeline/feed/encode_route.hpp"
#include "pipeline/feed/feed_options.hpp"

namespace framelane {

/// How another configuration of a feed that runs reaches the source thread, which takes it over
/// between two items of the source. Any thread.
class RunChanges {
 public:
  struct Change {
    std::shared_ptr<const FeedOptions> options;
    std::vector<EncodeRoute*> added;
    std::vector<EncodeRoute*> removed;
    std::optional<std::uint64_t> masks{};  ///< other ones begin: see SnapshotTap::expect_masks()
  };

  /// False, and nothing changes, if the source thread has ended and takes no more.
  bool post(Change change);
  /// The routes that the source thread has let go of since the last call.
  std::vector<EncodeRoute*> take_gone();

  // For the source thread.
  /// True if take() has something.
  bool any() const { return any_; }
  /// In the order of their posts.
  std::vector<Change> take();
  /// Nothing of the source thread uses these any more.
  void let_go(const std::vector<EncodeRoute*>& routes);
  /// Waits until there is something to take, until `deadline` or a stop.
  void wait_until(std::chrono::steady_clock::time_point deadline, const std::stop_token& stop);
  /// No more is taken. What was posted until now is to be taken once more.
  void close();

 private:
  std::atomic<bool> any_{false};
  std::mutex mutex_;  // guards all that follows
  std::condition_variable_any posted_;
  bool closed_ = false;
  std::vector<Change> changes_;
  std::vector<EncodeRoute*> gone_;
};

}  // namespace framelane
