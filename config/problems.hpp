#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/problem.hpp"
#include "config/yaml_tree.hpp"

namespace framelane {

/// Collects the problems of one file.
class Problems {
 public:
  explicit Problems(std::string file) : file_(std::move(file)) {}

  void add(Position position, std::string key, std::string message);
  /// A problem of a value, at its place.
  void add(const Node& node, std::string message) {
    add(node.position, node.path, std::move(message));
  }
  /// A problem of a map that lacks the key `missing`, at the key of the map.
  void add_missing(const Node& map, std::string_view missing, const std::string& message);

  bool empty() const { return problems_.empty(); }
  /// All problems in file order, each once, without secrets; none are left.
  std::vector<Problem> take();

 private:
  std::string file_;
  std::vector<Problem> problems_;
};

/// The known word of which `word` is probably a misspelling; empty if none is close.
std::string_view nearest(std::string_view word, std::span<const std::string_view> known);

/// "a, b, c"
std::string join(std::span<const std::string_view> words);

/// `text` in double quotes, for messages: without secrets, shortened, control characters replaced.
std::string in_quotes(std::string_view text);

}  // namespace framelane
