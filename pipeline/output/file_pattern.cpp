#include "pipeline/output/file_pattern.hpp"

#include <algorithm>
#include <cstddef>
#include <ctime>
#include <string_view>

#include "pipeline/base/failure.hpp"
#include "pipeline/base/redact.hpp"

namespace framelane {
namespace fs = std::filesystem;
namespace {

void check_fields(const std::string& path) {
  for (std::size_t at = path.find('%'); at != std::string::npos; at = path.find('%', at + 2)) {
    const char letter = at + 1 < path.size() ? path[at + 1] : '\0';
    if (letter != '\0' && NameShape::has_field(letter)) continue;
    throw FeedError(FeedFault::kConfiguration,
                    redact(path) + ": " +
                        (letter ? std::string{'%', letter} : std::string("a lone %")) +
                        " is no time field a file name can have; use " + NameShape::known_fields());
  }
}

/// "a//b" is "a/b": a folder that is read and a name that is made shall give the same path.
std::string with_single_slashes(std::string path) {
  const auto both = [](char a, char b) { return a == '/' && b == '/'; };
  path.erase(std::unique(path.begin(), path.end(), both), path.end());
  return path;
}

/// Where the extension of a file's name begins; the length of `name` if it has none.
std::size_t extension_at(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == name.npos || dot == 0 ? name.size() : dot;
}

std::string expand(const std::string& pattern, std::chrono::system_clock::time_point time) {
  if (pattern.find('%') == pattern.npos) return pattern;
  const std::time_t since_epoch = std::chrono::system_clock::to_time_t(time);
  std::tm local{};
  localtime_r(&since_epoch, &local);
  // A field is two characters of the pattern and writes at most 20, those of a negative %s.
  std::string text(pattern.size() * 10 + 1, '\0');
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  text.resize(std::strftime(text.data(), text.size(), pattern.c_str(), &local));
#pragma GCC diagnostic pop
  return text;
}

/// The name without the number that numbered_name() gives; the same if it has none.
std::string unnumbered_name(const std::string& name) {
  const std::size_t slash = name.rfind('/');
  const std::size_t begin = slash == name.npos ? 0 : slash + 1;
  const std::size_t dot = begin + extension_at(std::string_view(name).substr(begin));
  const std::size_t number = name.rfind('.', dot - 1);
  if (dot == 0 || number == name.npos || number < begin || number + 1 == dot) return name;
  const bool digits = std::all_of(name.begin() + static_cast<std::ptrdiff_t>(number) + 1,
                                  name.begin() + static_cast<std::ptrdiff_t>(dot),
                                  [](char c) { return c >= '0' && c <= '9'; });
  return digits ? name.substr(0, number) + name.substr(dot) : name;
}

}  // namespace

std::string numbered_name(const std::string& name, int number) {
  if (number <= 1) return name;
  const std::size_t slash = name.rfind('/');
  const std::size_t begin = slash == name.npos ? 0 : slash + 1;
  const std::size_t dot = begin + extension_at(std::string_view(name).substr(begin));
  return name.substr(0, dot) + '.' + std::to_string(number) + name.substr(dot);
}

FilePattern::FilePattern(const std::string& path) : path_(with_single_slashes(path)) {
  check_fields(path);
  std::string_view rest = path_;
  for (std::size_t slash = rest.find('/'); slash != rest.npos; slash = rest.find('/')) {
    const std::string_view name = rest.substr(0, slash);
    folders_.push_back({expand(std::string(name), {}), NameShape(name)});
    rest.remove_prefix(slash + 1);
  }
  const std::size_t dot = extension_at(rest);
  names_.emplace_back(rest);
  names_.emplace_back(std::string(rest.substr(0, dot)) + ".%s" + std::string(rest.substr(dot)));
}

std::string FilePattern::name_at(std::chrono::system_clock::time_point time) const {
  return expand(path_, time);
}

bool FilePattern::is_name(std::string_view name) const {
  return std::ranges::any_of(names_, [name](const NameShape& shape) { return shape.fits(name); });
}

bool FilePattern::is_path(std::string_view path) const {
  const std::string_view whole = path;
  auto folder =
      std::ranges::find_if(folders_, [](const Folder& each) { return each.shape.varies(); });
  for (; folder != folders_.end(); ++folder) {
    const std::size_t slash = path.find('/');
    if (slash == path.npos || !folder->shape.fits(path.substr(0, slash))) return false;
    path.remove_prefix(slash + 1);
  }
  return is_name(path) && has_day(whole);
}

bool FilePattern::has_day(std::string_view path) const {
  const std::string name = fixed_folder().append(path);
  for (const std::string& each : {name, unnumbered_name(name)}) {
    std::tm read{};
    read.tm_year = 100;  // a leap year, if the name tells none
    read.tm_mday = 1;
    const char* const end = strptime(each.c_str(), path_.c_str(), &read);
    if (end == nullptr || *end != '\0') continue;
    return std::chrono::year_month_day(std::chrono::year(read.tm_year + 1900),
                                       std::chrono::month(static_cast<unsigned>(read.tm_mon + 1)),
                                       std::chrono::day(static_cast<unsigned>(read.tm_mday)))
        .ok();
  }
  return true;  // it cannot be told
}

std::optional<std::chrono::system_clock::time_point> FilePattern::time_of(
    const std::string& path, std::chrono::system_clock::time_point near) const {
  using std::chrono::system_clock;
  for (const std::string& name : {path, unnumbered_name(path)}) {
    const bool varies = path_.find('%') != path_.npos;
    if (!varies) return std::nullopt;
    if (name_at(near) == name) return near;
    // What the name does not tell is as at `near`, but for the time of day.
    const std::time_t near_time = system_clock::to_time_t(near);
    std::tm local{};
    localtime_r(&near_time, &local);
    local.tm_hour = local.tm_min = local.tm_sec = 0;
    const char* const end = strptime(name.c_str(), path_.c_str(), &local);
    if (end == nullptr || *end != '\0') continue;
    local.tm_isdst = -1;
    const system_clock::time_point read = system_clock::from_time_t(std::mktime(&local));
    // An hour comes twice when summer ends, %I twice a day, and a name without a date every day.
    std::optional<system_clock::time_point> best;
    for (const int hours : {0, -1, 1, -12, 12, -24, 24}) {
      const system_clock::time_point time = read + std::chrono::hours(hours);
      if (name_at(time) != name) continue;
      if (!best || std::chrono::abs(time - near) < std::chrono::abs(*best - near)) best = time;
    }
    if (best) return best;
  }
  return std::nullopt;
}

bool FilePattern::meets(const FilePattern& other) const {
  return std::ranges::equal(
             folders_, other.folders_,
             [](const Folder& a, const Folder& b) { return a.shape.meets(b.shape); }) &&
         std::ranges::any_of(names_, [&](const NameShape& name) {
           return std::ranges::any_of(
               other.names_, [&](const NameShape& other_name) { return name.meets(other_name); });
         });
}

std::string FilePattern::fixed_folder() const {
  std::string path;
  for (const Folder& folder : folders_) {
    if (folder.shape.varies()) break;
    path += folder.literal + '/';
  }
  return path;
}

std::string_view FilePattern::literal_start() const {
  // Before the extension there may be a number.
  const std::string_view path = path_;
  const std::size_t name = path.rfind('/') + 1;  // npos + 1: all of it is the name
  const std::size_t extension = name + extension_at(path.substr(name));
  return path.substr(0, std::min(path.find('%'), extension));
}

void FilePattern::remove_empty_directories(const fs::path& file) const {
  fs::path place = file.parent_path();
  for (auto it = folders_.rbegin(); it != folders_.rend() && it->shape.varies(); ++it) {
    std::error_code error;  // "not empty" ends it
    if (!fs::remove(place, error) || error) return;
    place = place.parent_path();
  }
}

std::string pattern_of(std::string_view name) {
  std::string pattern;
  for (const char c : name) pattern.append(c == '%' ? 2 : 1, c);
  return pattern;
}

}  // namespace framelane
