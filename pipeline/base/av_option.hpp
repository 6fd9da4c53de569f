#pragma once

#include <string>
#include <vector>

namespace framelane {

/// One option handed to FFmpeg. An `inherited` one comes from the configuration's defaults and may
/// go unused (rtsp_transport for a file); any other that nothing consumes fails the feed.
struct AvOption {
  std::string key;
  std::string value;
  bool inherited = false;
};
using AvOptions = std::vector<AvOption>;

}  // namespace framelane
