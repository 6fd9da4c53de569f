#pragma once

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace framelane {

/// The Content-Type of a file that an output has written, by the end of its name.
inline const char* media_type_of(std::string_view file) {
  constexpr std::array<std::pair<std::string_view, const char*>, 9> kTypes{
      {{".m3u8", "application/vnd.apple.mpegurl"},
       {".m4s", "video/iso.segment"},
       {".mp4", "video/mp4"},
       {".mkv", "video/x-matroska"},
       {".webm", "video/webm"},
       {".mov", "video/quicktime"},
       {".ts", "video/mp2t"},
       {".avi", "video/x-msvideo"},
       {".flv", "video/x-flv"}}};
  const auto found =
      std::ranges::find_if(kTypes, [&](const auto& type) { return file.ends_with(type.first); });
  return found != kTypes.end() ? found->second : "application/octet-stream";
}

}  // namespace framelane
