#pragma once

#include <chrono>
#include <filesystem>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

namespace framelane {

/// What a file is called while it is being written: NAME.part.
inline constexpr std::string_view kPartSuffix = ".part";

/// "dir/name.mp4" and 2 give "dir/name.2.mp4"; 1 gives the name itself.
std::string numbered_name(const std::string& name, int number);

/// The names one file output gives to its files: its path with strftime fields,
/// the numbers that keep names apart, and NAME.part. Knows which files on disk
/// are its own, so that nothing else is ever completed or deleted.
class FilePattern {
 public:
  /// Throws FeedError(kConfiguration), naming the field, for a strftime field
  /// whose shape is not known (only those of known shape can be found again).
  /// "%%" is a percent sign.
  explicit FilePattern(const std::string& path);

  /// The name of a file that starts at this time, in local time.
  std::string name_at(std::chrono::system_clock::time_point time) const;

  /// Whether a file of this name could be one of this pattern's complete ones.
  bool could_name(std::string_view path) const;

  /// Files on disk that this pattern could have named, complete ones or those
  /// still NAME.part.
  std::vector<std::filesystem::path> complete_files() const { return find(complete_name_); }
  std::vector<std::filesystem::path> part_files() const { return find(part_name_); }

  /// Removes the file's directories as far as they are empty and were named by
  /// a strftime field.
  void remove_empty_directories(const std::filesystem::path& file) const;

 private:
  struct Directory {
    std::string literal;  // used when there is no field in it
    std::regex pattern;
    bool varies = false;
  };
  std::vector<std::filesystem::path> find(const std::regex& name) const;

  std::string path_;
  std::vector<Directory> directories_;
  std::regex complete_name_;
  std::regex part_name_;
};

/// Whether files of both patterns, which FilePattern takes, could have the same name. Tried with
/// the names of now and of a day on which most fields fit most others.
bool names_meet(const std::string& pattern, const std::string& other);

}  // namespace framelane
