#pragma once

namespace framelane::testing {

/// Holds up every decoder of a feed at its first frame, as a driver that hangs does:
/// avcodec_receive_frame does not return. One at a time.
class HeldDecoder {
 public:
  HeldDecoder();
  ~HeldDecoder() { release(); }
  void release();
};

}  // namespace framelane::testing
