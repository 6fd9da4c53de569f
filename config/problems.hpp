#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/problem.hpp"
#include "config/yaml_tree.hpp"

namespace framelane {

/// Collects the problems of a configuration: of its main file and those that it includes.
class Problems {
 public:
  explicit Problems(std::string file) : files_{std::move(file)} {}
  /// With the files of a configuration that has been read: files().
  explicit Problems(std::vector<std::string> files) : files_(std::move(files)) {}

  /// The number of a further file, for Position::file.
  int add_file(std::string file);
  const std::vector<std::string>& files() const { return files_; }

  void add(Position position, std::string key, std::string message);
  /// A problem of a value, at its place.
  void add(const Node& node, std::string message) {
    add(node.position, node.path, std::move(message));
  }
  /// A problem of a map that lacks the key `missing`, at the key of the map.
  void add_missing(const Node& map, std::string_view missing, const std::string& message);
  /// What has been found in a file by itself.
  void add_all(int file, Problems of_file);

  bool empty() const { return problems_.empty(); }
  /// All problems, by file and in file order, each once, without secrets; none are left.
  std::vector<Problem> take();

 private:
  struct Found {
    int file;
    Problem problem;
  };
  std::vector<std::string> files_;
  std::vector<Found> problems_;
};

/// The known word of which `word` is probably a misspelling; empty if none is close.
std::string_view nearest(std::string_view word, std::span<const std::string_view> known);

/// "a, b, c"
std::string join(std::span<const std::string_view> words);

/// `text` in double quotes, for messages: without secrets, shortened, control characters replaced.
std::string in_quotes(std::string_view text);

}  // namespace framelane
