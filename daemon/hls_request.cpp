#include "daemon/hls_request.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
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

constexpr std::string_view kUri = "URI=\"";
/// What is looked through for one request. A playlist may be as long as its folder is large.
constexpr std::size_t kMostRead = 64u << 20;
constexpr std::size_t kMostRenditions = 64;
constexpr std::size_t kLongestLine = 64 * 1024;  // a longer one is not read

/// What a playlist's line names; nothing if it names nothing, or a file that is not beside it.
std::string named_in(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line.starts_with('#')) {
    const std::size_t uri = line.find(kUri);
    if (uri == std::string_view::npos) return {};
    line.remove_prefix(uri + kUri.size());
    line = line.substr(0, line.find('"'));
  }
  if (line.starts_with('/') || line.find("://") != std::string_view::npos) return {};
  return percent_decoded(line);
}

/// Looks through the playlists of one folder, for one request.
class Playlists {
 public:
  Playlists(fs::path folder, const DiskAnswer& answer)
      : folder_(std::move(folder)), answer_(answer) {}

  /// True if the playlist, or one of the playlists that it names, names the file.
  bool name(const std::string& playlist, const std::string& file) {
    std::vector<std::string> renditions;
    const bool found = any(playlist, [&](std::string&& named) {
      if (named == file) return true;
      const bool is_playlist = named.ends_with(".m3u8");
      if (is_playlist && renditions.size() < kMostRenditions)
        renditions.push_back(std::move(named));
      return false;
    });
    return found || std::ranges::any_of(renditions, [&](const std::string& rendition) {
             // What it names is relative to it.
             const fs::path base = fs::path(rendition).parent_path();
             const std::string beside = fs::path(file).lexically_relative(base);
             return any(rendition, [&](std::string&& named) {
               if (named.find("./") == std::string::npos) return named == beside;
               return (base / named).lexically_normal() == fs::path(file);
             });
           });
  }

 private:
  /// True if `is_it` is true of a file that the playlist names, which it is called with one by one.
  template <typename IsIt>
  bool any(const std::string& playlist, IsIt is_it) {
    const FileDescriptor file = open_beneath(folder_, playlist);
    std::string text;
    std::array<char, kLongestLine> piece;
    while (file.get() >= 0 && left_ > 0 && !answer_.is_gone()) {
      const ssize_t got = ::read(file.get(), piece.data(), std::min(piece.size(), left_));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return false;
      if (got == 0) return text.size() <= kLongestLine && is_it(named_in(text));
      left_ -= static_cast<std::size_t>(got);
      text.append(piece.data(), static_cast<std::size_t>(got));
      std::size_t begin = 0;
      for (std::size_t end = 0; (end = text.find('\n', begin)) != std::string::npos;
           begin = end + 1) {
        const std::string_view line(text.data() + begin, end - begin);
        if (line.size() <= kLongestLine && is_it(named_in(line))) return true;
      }
      text.erase(0, begin);
      // The begin of a line that is too long stands for it.
      if (text.size() > kLongestLine) text.resize(kLongestLine + 1);
    }
    return false;
  }

  const fs::path folder_;
  const DiskAnswer& answer_;
  std::size_t left_ = kMostRead;
};

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
                                   file == name
                                       ? "the output has no playlist at present"
                                       : "the playlist names no file '" + file + "' at present");
        if (file != name && !Playlists(folder, *answer).name(name, file)) throw missing;
        const FileDescriptor opened = open_beneath(folder, file);
        if (const int error = errno; opened.get() < 0) throw open_error(error, file, missing);
        answer_with_file(request, opened, file, *answer);
      });
}

}  // namespace framelane
