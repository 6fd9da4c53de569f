#pragma once

extern "C" {
#include <libavformat/avio.h>
}

#include <atomic>
#include <chrono>
#include <cstdint>
#include <stop_token>
#include <utility>

namespace framelane {

/// Ends a blocking FFmpeg call when a stop is asked for or the call's deadline has passed. One per
/// source or muxer. FFmpeg asks callback() from inside its I/O, on the calling thread and on
/// threads of its own. Some calls never ask (opening a FIFO, or a file on a dead server): for those
/// overdue() tells whoever watches the thread.
///
/// FFmpeg's error code after an interrupted call says nothing ("Invalid data found"): take the
/// cause from cause(). The thread that makes the calls arms and disarms; all else may be asked on
/// any thread.
class Interrupt {
 public:
  enum class Cause { kNone, kStopped, kTimeout };

  explicit Interrupt(std::stop_token stop) : stop_(std::move(stop)) {}

  /// The next call may block for this long. To be called before each call, and disarm() after it.
  void arm(std::chrono::milliseconds timeout);
  /// Like arm(), but a stop does not end the call: for the last messages to a peer.
  void arm_farewell(std::chrono::milliseconds timeout);
  void disarm();
  /// Why FFmpeg was interrupted since the last arm; kNone when it was not.
  Cause cause() const { return cause_.load(); }
  /// True while a call is under way.
  bool under_way() const { return deadline_ns_ != 0; }
  /// True while a call is under way although its deadline has passed.
  bool overdue() const;
  bool stopped() const { return stop_.stop_requested(); }
  const std::stop_token& stop() const { return stop_; }

  /// For AVFormatContext::interrupt_callback and avio_open2. Refers to this Interrupt, which must
  /// outlive the context.
  AVIOInterruptCB callback();

 private:
  static int check(void* self);

  std::stop_token stop_;
  std::atomic<std::int64_t> deadline_ns_{0};  // steady clock; 0: no call is under way
  std::atomic<bool> farewell_{false};
  std::atomic<Cause> cause_{Cause::kNone};
};

/// Arms an Interrupt while it lives.
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
