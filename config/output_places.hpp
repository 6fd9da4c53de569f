#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/output/file_pattern.hpp"

namespace framelane {

/// Where the outputs of all feeds write, to find those that would write to the same place. Not
/// thread-safe.
class OutputPlaces {
 public:
  struct Files {
    std::string place;            ///< the output's url as an absolute path
    FilePattern pattern;          ///< of their names, absolute
    std::string_view deleted_by;  ///< what deletes old files, for messages; empty: nothing
    std::string output;           ///< for messages
  };

  /// Takes `place` for `output`. Returns the output that has it: this one, or an earlier one.
  const std::string& take(const std::string& place, const std::string& output);

  void add(Files files);
  /// Those of the added files whose names may meet the pattern's, by what the names begin with. The
  /// pointers stay valid.
  std::vector<const Files*> near(const FilePattern& pattern) const;

 private:
  std::map<std::string, std::string> taken_;
  std::multimap<std::string, Files, std::less<>> files_;  // by literal_start()
};

}  // namespace framelane
