#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.hpp"
#include "config/yaml_tree.hpp"

namespace framelane {

/// Collects what is wrong with one file.
class Problems {
 public:
  explicit Problems(std::string file) : file_(std::move(file)) {}

  void add(Position position, std::string key, std::string message);
  /// At a value.
  void add(const Node& node, std::string message) {
    add(node.position, node.path, std::move(message));
  }
  /// At the key of a map that lacks `missing`.
  void add_missing(const Node& map, std::string_view missing, const std::string& message);

  bool empty() const { return problems_.empty(); }
  /// In file order, each once, without secrets.
  std::vector<Problem> take();

 private:
  std::string file_;
  std::vector<Problem> problems_;
};

/// The known word that `word` is most likely a misspelling of; empty when none is near.
std::string_view nearest(std::string_view word, std::span<const std::string_view> known);

/// "a, b, c"
std::string join(std::span<const std::string_view> words);

/// `text` in double quotes, for messages: without secrets, shortened, control characters replaced.
std::string in_quotes(std::string_view text);

}  // namespace framelane
