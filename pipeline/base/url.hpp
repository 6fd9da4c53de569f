#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace framelane {

/// The scheme of a URL, as FFmpeg splits it, in lower case ("rtsp", "file", "lavfi"). Empty if
/// `url` is a path.
std::string url_scheme(std::string_view url);

/// The path of a local source: of a plain path or a "file:" URL. "-" for standard input ("-",
/// "pipe:", "pipe:0"). Nothing for everything else.
std::optional<std::string> local_path(std::string_view url);

/// The host of "scheme://user:password@host:port/…", without brackets; empty if there is none.
std::string url_host(std::string_view url);

}  // namespace framelane
