#include "pipeline/output/playlist.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "pipeline/base/failure.hpp"
#include "pipeline/base/redact.hpp"
#include "pipeline/output/io_error.hpp"

namespace framelane {
namespace fs = std::filesystem;
namespace {

/// The value of the first option of this name; empty if there is none.
std::string option(const OutputOptions& options, std::string_view key) {
  for (const AvOption& option : options.options) {
    if (option.key == key) return option.value;
  }
  return {};
}

bool names_own_segments(const OutputOptions& options) {
  return !option(options, "hls_segment_filename").empty() || !option(options, "strftime").empty() ||
         option(options, "hls_flags").find("single_file") != std::string::npos;
}

/// True if FFmpeg deletes old segments: our default, unless hls_flags replace it or take it away.
bool deletes_segments(const OutputOptions& options) {
  const std::string flags = option(options, "hls_flags");
  const std::size_t at = flags.find("delete_segments");
  if (at == std::string::npos) return flags.empty() || flags[0] == '+' || flags[0] == '-';
  return at == 0 || flags[at - 1] != '-';
}

std::set<std::string> listed_segments(const fs::path& playlist) {
  std::set<std::string> names;
  std::ifstream file(playlist);
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line[0] != '#') names.insert(fs::path(line).filename().string());
  }
  return names;
}

/// Stands between a playlist's stem and a segment's number. FFmpeg puts nothing there, so that
/// segment 0 of "cam1.m3u8" would have the name of segment 10 of "cam.m3u8".
constexpr const char* kSeparator = "-";

/// The number of a segment, like "index-12.ts" or "index-12.ts.tmp" of "index.m3u8". Nothing if
/// `name` is none of this playlist's segments.
std::optional<std::int64_t> segment_number(std::string_view name, std::string_view prefix,
                                           std::string_view extension) {
  if (!name.starts_with(prefix)) return {};
  name.remove_prefix(prefix.size());
  if (name.ends_with(".tmp")) name.remove_suffix(4);
  if (!name.ends_with(extension)) return {};
  name.remove_suffix(extension.size());
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  // FFmpeg writes no sign and no leading zeros: a file with those is not ours.
  if (error != std::errc() || name != std::to_string(number) || number < 0) return {};
  return number;
}

}  // namespace

MuxerTarget prepare_playlist(const OutputOptions& options, const Container& container, bool anew) {
  MuxerTarget target{.url = container.url};
  const fs::path playlist = container.url;
  const std::string prefix = playlist.stem().string() + kSeparator;
  const char* extension = container.fmp4_segments ? ".m4s" : ".ts";
  const bool own_names = names_own_segments(options);
  // With a query in the URL FFmpeg's own names are kept: ours would end up in the query.
  if (!own_names && (container.local || container.url.find('?') == std::string::npos)) {
    fs::path segments = playlist;
    target.segments = segments.replace_filename(prefix + "%d" + extension).string();
    target.init_segment = prefix + "init.mp4";
  }
  if (!container.local) return target;

  const fs::path directory = playlist.has_parent_path() ? playlist.parent_path() : fs::path(".");
  std::error_code error;
  if (!fs::create_directories(directory, error) && error) {
    throw_file_error(
        AVERROR(error.value()),
        "cannot create directory " + redact(directory.string()) + ": " + error.message());
  }
  if (fs::is_directory(playlist, error)) {
    throw IoError(IoFault::kIo,
                  "cannot write " + redact(playlist.string()) +
                      ": it is a folder; remove it, or give the playlist another name");
  }
  if (anew && options.existing == Existing::kRefuse && fs::exists(playlist, error)) {
    throw IoError(IoFault::kIo, "cannot write " + redact(playlist.string()) +
                                    ": it has appeared meanwhile; -y overwrites it");
  }
  if (anew) fs::remove(playlist, error);
  const std::set<std::string> listed = listed_segments(playlist);
  target.append = !listed.empty();
  if (own_names) return target;

  std::int64_t highest = -1;
  for (fs::directory_iterator it(directory, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    const auto number = segment_number(name, prefix, extension);
    if (!number || listed.contains(name)) continue;
    highest = std::max(highest, *number);
    std::error_code unremovable;
    if (anew || deletes_segments(options)) fs::remove(it->path(), unremovable);
  }
  if (!target.append && !anew && highest >= 0) target.first_segment = highest + 1;
  return target;
}

}  // namespace framelane
