#pragma once

namespace framelane::testing {

/// Holds up every encoder of the process: avcodec_send_frame does not return, as in a driver that
/// hangs. One at a time.
class HeldEncoder {
 public:
  ~HeldEncoder() { release(); }
  void hold();
  void release();
};

}  // namespace framelane::testing
