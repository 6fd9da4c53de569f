#include "daemon/hls_request.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <set>
#include <utility>
#include <vector>

#include "daemon/byte_range.hpp"
#include "daemon/media_type.hpp"
#include "daemon/query.hpp"
#include "daemon/request_reads.hpp"
#include "pipeline/base/secret_registry.hpp"
#include "pipeline/output/container.hpp"
#include "pipeline/output/open_beneath.hpp"

namespace framelane {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostBytes = 64u << 20;  // of a segment
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
std::optional<std::string> read_beneath(const fs::path& folder, const std::string& name) {
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
  const std::optional<std::string> text = read_beneath(folder, playlist);
  if (!text) return false;
  const std::set<std::string> names = names_in(*text);
  if (names.contains(file)) return true;
  return std::ranges::any_of(names, [&](const std::string& name) {
    if (!is_playlist(name)) return false;
    const std::optional<std::string> rendition = read_beneath(folder, name);
    if (!rendition) return false;
    // What it names is relative to it.
    const fs::path base = fs::path(name).parent_path();
    return std::ranges::any_of(names_in(*rendition), [&](const std::string& segment) {
      return (base / segment).lexically_normal() == fs::path(file);
    });
  });
}

HttpResponse answer_bytes(const HttpRequest& request, const std::string& file, std::string bytes) {
  HttpResponse response{.content_type = media_type_of(file)};
  response.headers.emplace("Accept-Ranges", "bytes");
  const auto range = byte_range(request, bytes.size());
  if (!range || range->first == range->second) {
    response.body = std::move(bytes);
    return response;
  }
  const auto [begin, end] = *range;
  response.status = 206;
  response.headers.emplace("Content-Range", "bytes " + std::to_string(begin) + "-" +
                                                std::to_string(end - 1) + "/" +
                                                std::to_string(bytes.size()));
  response.body = bytes.substr(begin, end - begin);
  return response;
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
                        const std::string& feed_name, const std::string& output,
                        const std::string& file) {
  require_known(request, {});
  const FeedView feed = require_feed(supervisor, feed_name);
  const std::optional<fs::path> playlist = playlist_of(*feed.options, output);
  if (!playlist) {
    throw RequestError(404, "no_such_playlist",
                       "the feed has no output '" + output + "' that writes a playlist");
  }
  const fs::path folder = playlist->parent_path();
  const std::string name = playlist->filename();
  static RequestReads reads;  // of all requests
  std::optional<std::string> bytes =
      reads.read(folder, [folder, name, file]() -> std::optional<std::string> {
        if (file != name && !is_named(folder, name, file)) return std::nullopt;
        return read_beneath(folder, file);
      });
  if (bytes) return answer_bytes(request, file, *std::move(bytes));
  throw RequestError(404, "not_found", "the playlist names no file '" + file + "' at present");
}

}  // namespace framelane
