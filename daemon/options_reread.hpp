#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "pipeline/base/detached_read.hpp"
#include "pipeline/feed/feed_options.hpp"

namespace framelane {

/// Returns the present options of the feed with this name, which may have other secrets than
/// before; nothing if they cannot be read, which it logs. May block for any time: it is called on a
/// thread of its own, and shares the ownership of what it uses.
using RereadOptions = std::function<std::optional<FeedOptions>(const std::string& feed)>;

/// Reads a feed's options again on a thread of its own, since a secret file may be on a file server
/// that does not answer. One thread uses it, and no function blocks.
class OptionsReread {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kPatience{2};

  /// If `read` is empty, poll() always returns kNothing.
  OptionsReread(std::string feed, RereadOptions read);

  enum class Progress { kReading, kRead, kNothing };
  /// Begins to read, and until that has ended returns kReading. Then returns kRead with what was
  /// read in `options`; or kNothing, and has logged why, if it could not be read or takes longer
  /// than kPatience. The call after that begins again, but not beside a thread that is still stuck.
  Progress poll(Clock::time_point now, FeedOptions& options);
  /// Counts the thread as abandoned if it still reads.
  void abandon() { call_.abandon(); }

 private:
  const std::string feed_;
  const RereadOptions read_;
  DetachedRead<std::optional<FeedOptions>> call_;
  std::optional<Clock::time_point> until_;  // of the reading that poll() waits for
};

}  // namespace framelane
