#pragma once

#include <string>

namespace framelane {

/// Tells failures of an encoder in close succession, which opening it again does not mend, from
/// single ones.
class CloseFailures {
 public:
  /// After so many packets without a failure, earlier failures no longer count.
  static constexpr int kHealthyPackets = 250;

  /// The encoder has failed. True from the third failure in close succession on.
  bool failed() {
    packets_ = 0;
    return ++failures_ >= 3;
  }
  /// The encoder has given a packet.
  void worked() {
    if (packets_ < kHealthyPackets && ++packets_ == kHealthyPackets) failures_ = 0;
  }
  /// "3 times in close succession".
  std::string text() const { return std::to_string(failures_) + " times in close succession"; }

 private:
  int failures_ = 0;
  int packets_ = 0;  // since the last failure, kHealthyPackets at most
};

}  // namespace framelane
