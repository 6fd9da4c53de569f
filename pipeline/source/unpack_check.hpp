#pragma once

#include <functional>

namespace framelane {

/// While it lives, zlib's uncompress() fails on the thread that made it, and `refused` is called.
/// FFmpeg's demuxers unpack headers with it at the size that the data claims, for which they have
/// no limit: the index of old QuickTime files (cmov) and the frames of ID3 tags. A few kilobytes
/// would become gigabytes.
///
/// This works as ConnectionCheck does.
class UnpackCheck {
 public:
  /// Does not throw. Null: nothing is refused.
  using Refused = std::function<void()>;

  explicit UnpackCheck(Refused refused);
  ~UnpackCheck();
  UnpackCheck(const UnpackCheck&) = delete;
  UnpackCheck& operator=(const UnpackCheck&) = delete;

 private:
  const Refused refused_;
  const Refused* const outer_;
};

}  // namespace framelane
