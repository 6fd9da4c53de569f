#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <stop_token>

extern "C" {
#include <libavformat/avio.h>
}

#include "pipeline/base/labels.hpp"

namespace framelane {

/// Ends a blocking FFmpeg call when a stop is asked for or its deadline has passed. One per source
/// or muxer: FFmpeg calls `callback()` from inside its I/O, on the thread that made the call and on
/// threads of its own. Some calls never ask (opening a FIFO, a file on a dead server): overdue()
/// tells whoever watches the thread.
///
/// FFmpeg's error code after an interrupted call is not to be trusted ("Invalid data found"): ask
/// `cause()`.
class Interrupt {
 public:
  enum class Cause { kNone, kStopped, kTimeout };

  explicit Interrupt(std::stop_token stop) : stop_(std::move(stop)) {}

  /// The next call may block this long. Arm before each call, disarm after it.
  void arm(std::chrono::milliseconds timeout);
  /// The same for a last word to the peer, which a stop does not cut short.
  void arm_farewell(std::chrono::milliseconds timeout);
  void disarm();
  /// Why FFmpeg was interrupted since the last arm; kNone when it was not.
  Cause cause() const { return cause_.load(); }
  bool under_way() const { return deadline_ns_ != 0; }
  /// A call is still under way though its deadline has passed. Any thread.
  bool overdue() const;
  bool stopped() const { return stop_.stop_requested(); }
  const std::stop_token& stop() const { return stop_; }

  /// For AVFormatContext::interrupt_callback and avio_open2. Refers to this object, which must
  /// outlive the context.
  AVIOInterruptCB callback();

 private:
  static int check(void* self);

  std::stop_token stop_;
  std::atomic<std::int64_t> deadline_ns_{0};  // steady clock; 0: none
  std::atomic<bool> farewell_{false};
  std::atomic<Cause> cause_{Cause::kNone};
};

/// Arms an Interrupt for as long as it lives.
class CallScope {
 public:
  CallScope(Interrupt& interrupt, std::chrono::milliseconds timeout) : interrupt_(interrupt) {
    interrupt_.arm(timeout);
  }
  ~CallScope() { interrupt_.disarm(); }
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;

 private:
  Interrupt& interrupt_;
};

}  // namespace framelane
