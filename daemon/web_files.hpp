#pragma once

#include <span>
#include <string_view>

namespace framelane {

/// A file of the status page (web/, and hls.js if the build had it). It lives as long as the
/// program.
struct WebFile {
  std::string_view name;  ///< such as "main.js"; no folder
  std::string_view content_type;
  std::string_view etag;  ///< of these bytes, with its quotes
  std::string_view bytes;
};

/// All that are built in, in no order. Defined in a source that cmake/Embed.cmake writes.
std::span<const WebFile> web_files();

}  // namespace framelane
