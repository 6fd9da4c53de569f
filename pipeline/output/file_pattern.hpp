#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/output/name_shape.hpp"

namespace framelane {

/// Ends the name of a file while it is written: NAME.part.
inline constexpr std::string_view kPartSuffix = ".part";

/// The name with a number: "dir/name.mp4" and 2 give "dir/name.2.mp4". 1 gives the name itself.
std::string numbered_name(const std::string& name, int number);

/// The names that one output gives to its files: its path with strftime fields, then a number where
/// two would be equal, and ".part" while they are written. Recognises the output's own files, so
/// that no other is ever completed or deleted. Immutable: any thread.
class FilePattern {
 public:
  struct Folder {
    std::string literal;  ///< its name, unless the shape varies
    NameShape shape;
  };

  /// "%%" is a percent sign. Throws FeedError(kConfiguration) for a strftime field that is not
  /// known here: files named by it could not be found again.
  explicit FilePattern(const std::string& path);

  bool operator==(const FilePattern& other) const { return path_ == other.path_; }

  /// The name of a file that begins at this time, given in the local time zone.
  std::string name_at(std::chrono::system_clock::time_point time) const;

  /// True if a complete file could have this path, from fixed_folder() on: there is such a day, and
  /// such a time.
  bool is_path(std::string_view path) const;
  /// When a file of this name began, as far as the name tells: `near` if that is a time with this
  /// name, else the time with this name that is next to `near`. Nothing if the name has no time.
  std::optional<std::chrono::system_clock::time_point> time_of(
      const std::string& path, std::chrono::system_clock::time_point near) const;

  /// The folders in a path, outermost first. The first of an absolute path is "", the root.
  const std::vector<Folder>& folders() const { return folders_; }
  /// True if a complete file could have this name in the last of the folders.
  bool is_name(std::string_view name) const;
  /// True if complete files of both could have the same path.
  bool meets(const FilePattern& other) const;
  /// What all names begin with. Two patterns can only meet if that of one begins with that of the
  /// other.
  std::string_view literal_start() const;
  /// The folders before the first one whose name varies, with a '/' at the end; empty for none.
  std::string fixed_folder() const;

  /// Removes the folders of `file`, innermost first, as long as they are empty and have a name with
  /// a strftime field.
  void remove_empty_directories(const std::filesystem::path& file) const;

 private:
  /// False if the month in the path has no such day.
  bool has_day(std::string_view path) const;

  std::string path_;
  std::vector<Folder> folders_;
  std::vector<NameShape> names_;  // without a number, and with one
};

/// A name as a pattern: its percent signs are no fields.
std::string pattern_of(std::string_view name);

}  // namespace framelane
