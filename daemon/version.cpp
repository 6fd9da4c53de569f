#include "daemon/version.hpp"

extern "C" {
#include <libavutil/avutil.h>
}

namespace framelane {

VersionInfo version_info() {
  return {FRAMELANE_VERSION, FRAMELANE_REVISION, av_version_info(), "none"};
}

std::string version_text() {
  const VersionInfo info = version_info();
  return "framelane " + info.version + " (" + info.revision + ")\nFFmpeg " + info.ffmpeg +
         "\nCUDA " + info.cuda + "\nbackends: cpu\n";
}

}  // namespace framelane
