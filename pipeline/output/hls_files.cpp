#include "pipeline/output/hls_files.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <system_error>

#include "pipeline/output/file_pattern.hpp"
#include "pipeline/output/media_playlist.hpp"

namespace framelane {
namespace fs = std::filesystem;
namespace {

fs::path parent_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

/// The stem ends with '-', so that segment 0 of "cam1.m3u8" does not get the name of segment 10 of
/// "cam.m3u8".
NumberSeries beside(const fs::path& playlist, const std::string& middle, const std::string& end) {
  fs::path path = playlist;
  return {path.replace_filename(playlist.stem().string() + "-" + middle).string(), end};
}

}  // namespace

std::optional<NumberSeries> NumberSeries::parse(std::string_view pattern) {
  const std::size_t at = pattern.find('%');
  if (at == pattern.npos || pattern.find('%', at + 1) != pattern.npos) return {};
  std::size_t end = at + 1;
  std::size_t width = 0;
  for (; end < pattern.size() && pattern[end] >= '0' && pattern[end] <= '9'; ++end) {
    width = std::min<std::size_t>(width * 10 + static_cast<std::size_t>(pattern[end] - '0'), 19);
  }
  if (end == pattern.size() || pattern[end] != 'd' || width > 18) return {};
  return NumberSeries{std::string(pattern.substr(0, at)), std::string(pattern.substr(end + 1)),
                      width};
}

std::string NumberSeries::name(std::uint64_t number) const {
  std::string digits = std::to_string(number);
  if (digits.size() < width) digits.insert(0, width - digits.size(), '0');
  return before + digits + after;
}

std::optional<std::uint64_t> NumberSeries::number_of(std::string_view text) const {
  if (text.size() <= before.size() + after.size()) return {};
  if (!text.starts_with(before) || !text.ends_with(after)) return {};
  const char* const begin = text.data() + before.size();
  const char* const end = text.data() + text.size() - after.size();
  std::uint64_t number = 0;
  if (std::from_chars(begin, end, number).ec != std::errc()) return {};
  // No more zeros are written in front, and nothing behind the number.
  if (number >= kLargestSegmentNumber || text != name(number)) return {};
  return number;
}

HlsFiles::HlsFiles(const fs::path& playlist, const std::string& segment_filename)
    : folder_(parent_of(playlist)) {
  const auto named = NumberSeries::parse(segment_filename);
  ts_ = with_names(named ? *named : beside(playlist, "", ".ts"));
  fmp4_ = with_names(named ? *named : beside(playlist, "", ".m4s"));
  headers_ = with_names(beside(playlist, "init-", ".mp4"));
}

HlsFiles::Series HlsFiles::with_names(const NumberSeries& paths) const {
  // A NUL stands for the number: it is in no path.
  const std::string name = relative(paths.before + '\0' + paths.after);
  const std::size_t number = name.find('\0');
  return {paths, {name.substr(0, number), name.substr(number + 1), paths.width}};
}

fs::path HlsFiles::segment(std::uint64_t number, bool fmp4) const {
  return (fmp4 ? fmp4_ : ts_).paths.name(number);
}

fs::path HlsFiles::header(std::uint64_t number) const { return headers_.paths.name(number); }

std::string HlsFiles::relative(const fs::path& file) const {
  return file.lexically_proximate(folder_).string();
}

std::optional<std::uint64_t> HlsFiles::segment_number(std::string_view name) const {
  const auto number = ts_.names.number_of(name);
  return number ? number : fmp4_.names.number_of(name);
}

std::optional<fs::path> HlsFiles::find(std::string_view name) const {
  for (const Series* series : {&ts_, &fmp4_, &headers_}) {
    if (const auto number = series->names.number_of(name)) return series->paths.name(*number);
  }
  return {};
}

std::optional<std::string> HlsFiles::why_not_found(std::string_view base_url) const {
  for (const Series* series : {&ts_, &headers_}) {  // those of fMP4 differ in the ending alone
    const std::string name = series->names.name(0);
    // A playlist has URIs (RFC 8216, section 4.1). These characters have a meaning in them or, the
    // last two, end or change them. Others that URIs do not have, such as spaces, players escape.
    std::size_t at = name.find_first_of("#?%\"\\");
    // What is before a colon in front of the first slash is a scheme (RFC 3986, section 4.2).
    if (at == name.npos && base_url.empty() && name.find(':') < name.find('/')) at = name.find(':');
    if (at == name.npos) continue;
    return fmt::format(
        "names segments with the character {}, which has another meaning in a playlist: players "
        "would not find them. Use another name",
        name[at]);
  }
  return {};
}

std::vector<std::string> HlsFiles::patterns() const {
  std::vector<std::string> patterns;
  for (const Series* series : {&ts_, &fmp4_, &headers_}) {
    patterns.push_back(pattern_of(series->paths.before) + "%s" + pattern_of(series->paths.after));
  }
  return patterns;
}

}  // namespace framelane
