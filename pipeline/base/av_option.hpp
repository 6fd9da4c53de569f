#pragma once

#include <string>
#include <vector>

namespace framelane {

/// One option for FFmpeg. The feed fails if nothing in FFmpeg uses it, unless it is `inherited`: it
/// then comes from the configuration's defaults, and need not suit every input and output
/// (rtsp_transport and a file).
struct AvOption {
  std::string key;
  std::string value;
  bool inherited = false;

  friend bool operator==(const AvOption&, const AvOption&) = default;
};
using AvOptions = std::vector<AvOption>;

}  // namespace framelane
