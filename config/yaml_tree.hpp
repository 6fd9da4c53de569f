#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace framelane {

class Problems;

/// A place in a file. Lines and columns count from 1, columns in bytes.
struct Position {
  int line = 1;
  int column = 1;
  int file = 0;  ///< as Problems numbers them; 0: the main file
};

/// One value of a file, in a tree of values. Aliases are copied, so that every node has its own
/// key path and the place of its text. Scalars are text, and the key decides what they mean: `no`
/// is not a boolean, and 0554 is not an octal number.
struct Node {
  enum class Kind { kNull, kScalar, kSequence, kMap };
  struct Entry;

  Kind kind = Kind::kNull;
  Position position;      ///< of the value; for null, of its key
  Position key_position;  ///< of the key of the value; if it has none, of the value
  std::string path;       ///< "feeds.gate.input.url", "feeds.gate.encodes.live.video.codec[0]"
  std::string text;       ///< of a scalar
  std::vector<Node> items;
  std::vector<Entry> entries;  ///< in file order, keys unique

  bool is_map() const { return kind == Kind::kMap; }
  /// The value of a key; nullptr if there is no such key or this is no map.
  const Node* find(std::string_view key) const;
  /// The value at the end of a path of keys.
  const Node* find(std::initializer_list<std::string_view> keys) const;
  /// The items of a list; of anything else the value itself.
  std::span<const Node> items_or_self() const {
    return kind == Kind::kSequence ? std::span<const Node>(items) : std::span(this, 1);
  }
};

struct Node::Entry {
  std::string key;
  Node value;
};

/// Merges `over` over `base`. Maps are merged key by key, every other value is replaced, and null
/// removes a key. A null with nothing to remove stays, so that the reader reports it. The merged
/// map has the place and path of `over`; each value keeps its own.
Node merge(const Node& base, const Node& over);

/// Parses one YAML document, all of it in the main file. Syntax errors, duplicate keys, `<<`, tags,
/// a second document and bytes that are no text go to `problems`. What could be parsed is returned
/// in spite of them; a null node if there is nothing.
Node parse_yaml(std::string_view text, Problems& problems);

}  // namespace framelane
