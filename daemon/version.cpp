#include "daemon/version.hpp"

#include "pipeline/stage/gpu.hpp"

extern "C" {
#include <libavutil/avutil.h>
}

namespace framelane {

VersionInfo version_info() {
  const std::string cuda = cuda_build_version();
  return {FRAMELANE_VERSION, FRAMELANE_REVISION, av_version_info(), cuda.empty() ? "none" : cuda};
}

std::string version_text() {
  const VersionInfo info = version_info();
  std::string cuda = info.cuda;
  if (cuda != "none") {
    const std::string driver = cuda_driver_version();
    cuda += driver.empty() ? " (no driver)" : " (the driver supports " + driver + ')';
  }
  return "framelane " + info.version + " (" + info.revision + ")\nFFmpeg " + info.ffmpeg +
         "\nCUDA " + cuda + "\nbackends: cpu" + (info.cuda == "none" ? "" : ", cuda") + '\n';
}

}  // namespace framelane
