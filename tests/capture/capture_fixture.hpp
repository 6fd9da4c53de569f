#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "capture/framelane_capture.h"
#include "tests/capture/raw_reader.hpp"

namespace framelane::testing {

struct CloseCapture {
  void operator()(framelane_capture* capture) const { framelane_capture_close(capture); }
};
using Capture = std::unique_ptr<framelane_capture, CloseCapture>;

/// A folder for sockets, and captures with frames of 1003 bytes: no multiple of 8 or of a page.
class CaptureTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kFrameSize = 1003;

  CaptureTest();
  ~CaptureTest() override;

  /// Options for a socket in the folder; `slots` as given, all others zero.
  [[nodiscard]] framelane_capture_options options(int slots = 4) const;
  /// Opens a capture; the test fails if that fails.
  [[nodiscard]] Capture open(int slots = 4) const { return open(options(slots)); }
  [[nodiscard]] static Capture open(const framelane_capture_options& options);
  /// What open() answers, which must be an error.
  [[nodiscard]] static int refusal(const framelane_capture_options& options);

  /// Connects one more reader, whose area is mapped when this returns.
  [[nodiscard]] std::unique_ptr<RawReader> join(const Capture& capture) const;

  std::filesystem::path folder;
  std::string path;  // of the socket
};

/// Borrows a frame, which must be free, and publishes it with `fill` in every byte. The number of
/// readers that got it.
int publish(const Capture& capture, std::uint8_t fill = 0,
            std::int64_t time = FRAMELANE_CAPTURE_TIME_UNKNOWN);
/// The result of a borrow() that does not wait (0 or -EAGAIN); a frame that it gives is given back.
int try_borrow(const Capture& capture);
framelane_capture_counts counts(const Capture& capture);
/// The names of this process's areas in /dev/shm, where other tests have theirs too.
std::vector<std::string> own_areas();

/// Runs `body` in a forked child, which ends with its result, without destructors. Returns the
/// child's number.
pid_t in_child(const std::function<int()>& body);
/// The exit status of a child, or minus the signal that ended it.
int wait_for_child(pid_t child);

}  // namespace framelane::testing
