#pragma once

#include <chrono>
#include <filesystem>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

namespace framelane {

/// Ends the name of a file while it is written: NAME.part.
inline constexpr std::string_view kPartSuffix = ".part";

/// The name with a number: "dir/name.mp4" and 2 give "dir/name.2.mp4". 1 gives the name itself.
std::string numbered_name(const std::string& name, int number);

/// The names that one output gives to its files: its path with strftime fields, then a number where
/// two would be equal, and ".part" while they are written. Finds the output's own files on disk, so
/// that no other is ever completed or deleted. Immutable: any thread.
class FilePattern {
 public:
  /// "%%" is a percent sign. Throws FeedError(kConfiguration) for a strftime field that is not
  /// known here: files named by it could not be found again.
  explicit FilePattern(const std::string& path);

  /// The name of a file that begins at this time, given in the local time zone.
  std::string name_at(std::chrono::system_clock::time_point time) const;

  /// True if a complete file of this pattern could have this path.
  bool could_name(std::string_view path) const;

  /// The files on disk that this pattern could have named: complete ones, or those that are still
  /// NAME.part. In no order. Block as long as the file system does, and leave out what cannot be
  /// read.
  std::vector<std::filesystem::path> complete_files() const { return find(complete_name_); }
  std::vector<std::filesystem::path> part_files() const { return find(part_name_); }

  /// Removes the folders of `file`, innermost first, as long as they are empty and have a name with
  /// a strftime field.
  void remove_empty_directories(const std::filesystem::path& file) const;

 private:
  struct Directory {
    std::string literal;  // its name, if there is no field in it
    std::regex pattern;   // of its name, if there is one
    bool varies = false;
  };
  std::vector<std::filesystem::path> find(const std::regex& name) const;

  std::string path_;
  std::vector<Directory> directories_;
  std::regex complete_name_;
  std::regex part_name_;
};

/// True if files of both patterns could have the same name. Found by trying two times: `now`, and
/// one at which most fields read "11", so that they fit most other fields. Throws as FilePattern
/// does.
bool names_meet(const std::string& pattern, const std::string& other,
                std::chrono::system_clock::time_point now);

}  // namespace framelane
