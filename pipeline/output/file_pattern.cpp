#include "pipeline/output/file_pattern.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <ctime>
#include <mutex>
#include <string_view>

#include "pipeline/base/failure.hpp"
#include "pipeline/base/redact.hpp"

namespace framelane {
namespace fs = std::filesystem;
namespace {

struct Field {
  char letter;
  const char* shape;  // what strftime writes for it, as a regular expression
};
constexpr std::array<Field, 17> kFields{{{'Y', "[0-9]{4}"},
                                         {'y', "[0-9]{2}"},
                                         {'m', "[0-9]{2}"},
                                         {'d', "[0-9]{2}"},
                                         {'H', "[0-9]{2}"},
                                         {'I', "[0-9]{2}"},
                                         {'M', "[0-9]{2}"},
                                         {'S', "[0-9]{2}"},
                                         {'j', "[0-9]{3}"},
                                         {'V', "[0-9]{2}"},
                                         {'u', "[1-7]"},
                                         {'s', "[0-9]+"},
                                         {'F', "[0-9]{4}-[0-9]{2}-[0-9]{2}"},
                                         {'T', "[0-9]{2}:[0-9]{2}:[0-9]{2}"},
                                         {'R', "[0-9]{2}:[0-9]{2}"},
                                         {'z', "[+-][0-9]{4}"},
                                         {'%', "%"}}};

const char* shape_of(char letter) {
  for (const Field& field : kFields) {
    if (field.letter == letter) return field.shape;
  }
  return nullptr;
}

std::string expression_of(std::string_view text) {
  std::string expression;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      expression += shape_of(text[++i]);
    } else {
      if (!std::isalnum(static_cast<unsigned char>(text[i])) && text[i] != '_') expression += '\\';
      expression += text[i];
    }
  }
  return expression;
}

void check_fields(const std::string& path) {
  for (std::size_t at = path.find('%'); at != std::string::npos; at = path.find('%', at + 2)) {
    const char letter = at + 1 < path.size() ? path[at + 1] : '\0';
    if (letter != '\0' && shape_of(letter)) continue;
    std::string known;
    for (const Field& field : kFields)
      known += std::string(known.empty() ? "%" : ", %") + field.letter;
    throw FeedError(FeedFault::kConfiguration,
                    redact(path) + ": " +
                        (letter ? std::string{'%', letter} : std::string("a lone %")) +
                        " is no time field a file name can have; use " + known);
  }
}

bool varies(std::string_view text) {
  for (std::size_t at = text.find('%'); at != text.npos; at = text.find('%', at + 2)) {
    if (text[at + 1] != '%') return true;
  }
  return false;
}

/// Where the extension of a file's name begins; the length of `name` if it has none.
std::size_t extension_at(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == name.npos || dot == 0 ? name.size() : dot;
}

std::string expand(const std::string& pattern, std::chrono::system_clock::time_point time) {
  if (pattern.find('%') == pattern.npos) return pattern;
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm local{};
  localtime_r(&seconds, &local);
  // A field is two characters of the pattern and writes at most 20, those of a negative %s.
  std::string text(pattern.size() * 10 + 1, '\0');
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  text.resize(std::strftime(text.data(), text.size(), pattern.c_str(), &local));
#pragma GCC diagnostic pop
  return text;
}

/// Compiles one expression at a time, since libstdc++ then fills a cache of the shared locale
/// without a lock (GCC bug 77704).
std::regex compile(const std::string& expression) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  return std::regex(expression);
}

}  // namespace

std::string numbered_name(const std::string& name, int number) {
  if (number <= 1) return name;
  const std::size_t slash = name.rfind('/');
  const std::size_t begin = slash == name.npos ? 0 : slash + 1;
  const std::size_t dot = begin + extension_at(std::string_view(name).substr(begin));
  return name.substr(0, dot) + '.' + std::to_string(number) + name.substr(dot);
}

FilePattern::FilePattern(const std::string& path) : path_(path) {
  check_fields(path);
  std::string_view rest = path;
  for (std::size_t slash = rest.find('/'); slash != rest.npos; slash = rest.find('/')) {
    Directory directory;
    const std::string_view name = rest.substr(0, slash);
    directory.varies = varies(name);
    if (directory.varies) {
      directory.pattern = compile(expression_of(name));
    } else {
      directory.literal = expand(std::string(name), {});
    }
    directories_.push_back(std::move(directory));
    rest.remove_prefix(slash + 1);
  }
  const std::size_t dot = extension_at(rest);
  const std::string name =
      expression_of(rest.substr(0, dot)) + "(\\.[0-9]+)?" + expression_of(rest.substr(dot));
  complete_name_ = compile(name);
  part_name_ = compile(name + "\\.part");
}

std::string FilePattern::name_at(std::chrono::system_clock::time_point time) const {
  return expand(path_, time);
}

bool FilePattern::could_name(std::string_view path) const {
  for (const Directory& directory : directories_) {
    const std::size_t slash = path.find('/');
    if (slash == path.npos) return false;
    const std::string name(path.substr(0, slash));
    if (directory.varies ? !std::regex_match(name, directory.pattern) : name != directory.literal) {
      return false;
    }
    path.remove_prefix(slash + 1);
  }
  return std::regex_match(std::string(path), complete_name_);
}

std::vector<fs::path> FilePattern::find(const std::regex& name) const {
  std::error_code error;
  // "a//b" and a leading "/" give empty components; the first one is the root.
  std::vector<fs::path> places{path_.starts_with('/') ? fs::path("/") : fs::path()};
  const auto entries = [&error](const fs::path& place) {
    return fs::directory_iterator(place.empty() ? fs::path(".") : place, error);
  };
  for (const Directory& directory : directories_) {
    if (!directory.varies) {
      for (fs::path& place : places) place /= directory.literal;
      continue;
    }
    std::vector<fs::path> deeper;
    for (const fs::path& place : places) {
      for (auto it = entries(place); !error && it != fs::directory_iterator();
           it.increment(error)) {
        const std::string entry = it->path().filename().string();
        std::error_code unreadable;
        if (std::regex_match(entry, directory.pattern) && it->is_directory(unreadable)) {
          deeper.push_back(place / entry);
        }
      }
    }
    places = std::move(deeper);
  }
  std::vector<fs::path> found;
  for (const fs::path& place : places) {
    for (auto it = entries(place); !error && it != fs::directory_iterator(); it.increment(error)) {
      const std::string entry = it->path().filename().string();
      std::error_code unreadable;
      if (std::regex_match(entry, name) && it->is_regular_file(unreadable)) {
        found.push_back(place / entry);
      }
    }
  }
  return found;
}

namespace {

/// What all names of a pattern begin with: the part before the first field, and before the
/// extension, since a number may come there.
std::string_view literal_start(std::string_view pattern) {
  const std::size_t name = pattern.rfind('/') + 1;  // npos + 1: all of it is the name
  const std::size_t extension = name + extension_at(pattern.substr(name));
  return pattern.substr(0, std::min(pattern.find('%'), extension));
}

}  // namespace

bool names_meet(const std::string& pattern, const std::string& other,
                std::chrono::system_clock::time_point now) {
  // Most pairs end here: compiling the patterns takes long if there are a thousand outputs.
  const std::string_view start = literal_start(pattern);
  const std::string_view other_start = literal_start(other);
  if (!start.starts_with(other_start) && !other_start.starts_with(start)) return false;
  const FilePattern one(pattern);
  const FilePattern two(other);
  std::tm elevens{};
  elevens.tm_year = 2011 - 1900;
  elevens.tm_mon = 11 - 1;
  elevens.tm_mday = elevens.tm_hour = elevens.tm_min = elevens.tm_sec = 11;
  elevens.tm_isdst = -1;
  for (const auto time : {std::chrono::system_clock::from_time_t(std::mktime(&elevens)), now}) {
    if (one.could_name(two.name_at(time)) || two.could_name(one.name_at(time))) return true;
  }
  return false;
}

void FilePattern::remove_empty_directories(const fs::path& file) const {
  fs::path place = file.parent_path();
  for (auto it = directories_.rbegin(); it != directories_.rend() && it->varies; ++it) {
    std::error_code error;  // "not empty" ends it
    if (!fs::remove(place, error) || error) return;
    place = place.parent_path();
  }
}

}  // namespace framelane
