#pragma once

namespace framelane::testing {

/// Holds up every encoder of the process, as a driver that hangs does: avcodec_send_frame does not
/// return after hold(), avcodec_open2 after hold_opening(). One at a time.
class HeldEncoder {
 public:
  ~HeldEncoder() { release(); }
  void hold();
  void hold_opening();
  void release();
  /// How many calls do not return.
  int waiting() const;
};

/// While one exists, no encoder of the process takes a frame, with an error of FFmpeg.
class FailingEncoder {
 public:
  FailingEncoder();  // AVERROR_EXTERNAL
  explicit FailingEncoder(int error);
  ~FailingEncoder();
};

/// While it lives, every audio encoder of the process fails: avcodec_send_frame returns an error.
/// One at a time.
class FailingAudioEncoder {
 public:
  FailingAudioEncoder();
  ~FailingAudioEncoder();
  FailingAudioEncoder(const FailingAudioEncoder&) = delete;
  FailingAudioEncoder& operator=(const FailingAudioEncoder&) = delete;
};

}  // namespace framelane::testing
