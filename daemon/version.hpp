#pragma once

#include <string>

namespace framelane {

struct VersionInfo {
  std::string version;
  std::string revision;
  std::string ffmpeg;  ///< of the libraries in use, not of the headers
  std::string cuda;    ///< "none" in a build without the CUDA backend
};
VersionInfo version_info();
/// What `framelane --version` prints.
std::string version_text();

}  // namespace framelane
