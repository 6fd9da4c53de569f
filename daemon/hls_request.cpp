#include "daemon/hls_request.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <set>
#include <utility>
#include <vector>

#include "daemon/file_answer.hpp"
#include "daemon/query.hpp"
#include "pipeline/base/secret_registry.hpp"
#include "pipeline/output/container.hpp"
#include "pipeline/output/open_beneath.hpp"

namespace framelane {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostBytes = 16u << 20;  // of a playlist
constexpr std::string_view kUri = "URI=\"";

bool is_absolute_uri(std::string_view uri) {
  return uri.starts_with('/') || uri.find("://") != std::string_view::npos;
}

/// The files that a playlist names, as they are called beside it.
std::set<std::string> names_in(const std::string& playlist) {
  std::set<std::string> names;
  const auto add = [&](std::string_view uri) {
    if (!uri.empty() && !is_absolute_uri(uri)) names.insert(percent_decoded(uri));
  };
  for (std::size_t at = 0; at < playlist.size();) {
    const std::size_t end = std::min(playlist.find('\n', at), playlist.size());
    std::string_view line = std::string_view(playlist).substr(at, end - at);
    at = end + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.starts_with('#')) {
      add(line);
    } else if (const std::size_t uri = line.find(kUri); uri != std::string_view::npos) {
      line.remove_prefix(uri + kUri.size());
      add(line.substr(0, line.find('"')));
    }
  }
  return names;
}

/// Nothing if it is no file there, or is too large or cannot be read.
std::optional<std::string> read_playlist(const fs::path& folder, const std::string& name) {
  const FileDescriptor file = open_beneath(folder, name);
  if (file.get() < 0) return std::nullopt;
  std::string bytes;
  std::array<char, 64 * 1024> piece;
  for (;;) {
    const ssize_t got = ::read(file.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 || bytes.size() > kMostBytes) return std::nullopt;
    if (got == 0) return bytes;
    bytes.append(piece.data(), static_cast<std::size_t>(got));
  }
}

bool is_playlist(std::string_view name) { return name.ends_with(".m3u8"); }

/// True if the playlist, or one of the playlists that it names, names the file.
bool is_named(const fs::path& folder, const std::string& playlist, const std::string& file) {
  const std::optional<std::string> text = read_playlist(folder, playlist);
  if (!text) return false;
  const std::set<std::string> names = names_in(*text);
  if (names.contains(file)) return true;
  return std::ranges::any_of(names, [&](const std::string& name) {
    if (!is_playlist(name)) return false;
    const std::optional<std::string> rendition = read_playlist(folder, name);
    if (!rendition) return false;
    // What it names is relative to it.
    const fs::path base = fs::path(name).parent_path();
    return std::ranges::any_of(names_in(*rendition), [&](const std::string& segment) {
      return (base / segment).lexically_normal() == fs::path(file);
    });
  });
}

}  // namespace

std::optional<fs::path> playlist_of(const FeedOptions& feed, std::string_view name) {
  const auto output = std::ranges::find(feed.outputs, name, &OutputOptions::name);
  if (output == feed.outputs.end()) return std::nullopt;
  const Container container = container_of(*output);
  if (container.kind != OutputKind::kPlaylist) return std::nullopt;
  const bool elsewhere = std::ranges::any_of(
      output->options, [](const AvOption& option) { return option.key == "hls_base_url"; });
  if (elsewhere) return std::nullopt;
  return output->master.empty() ? container.url : output->master;
}

HttpResponse answer_hls(const HttpRequest& request, const Supervisor& supervisor,
                        DiskReaders& readers, const std::string& feed_name,
                        const std::string& output, const std::string& file) {
  require_known(request, {});
  const FeedView feed = require_feed(supervisor, feed_name);
  const std::optional<fs::path> playlist = playlist_of(*feed.options, output);
  if (!playlist) {
    throw RequestError(404, "no_such_playlist",
                       "the feed has no output '" + output + "' that writes a playlist");
  }
  return readers.answer(
      "feed " + feed_name + ": output " + output,
      [request, folder = playlist->parent_path(), name = playlist->filename().string(),
       file](const std::shared_ptr<DiskAnswer>& answer) {
        const RequestError missing(404, "not_found",
                                   "the playlist names no file '" + file + "' at present");
        if (file != name && !is_named(folder, name, file)) throw missing;
        const FileDescriptor opened = open_beneath(folder, file);
        if (const int error = errno; opened.get() < 0) throw open_error(error, file, missing);
        answer_with_file(request, opened, file, *answer);
      });
}

}  // namespace framelane
