#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace framelane {

class Problems;

/// A place in the file, both from 1; columns count bytes.
struct Position {
  int line = 1;
  int column = 1;
};

/// One value of the file. A tree of values: aliases are copies, so every node knows its own key
/// path, and where its text stands. Scalars are text; what they mean is up to the key they are
/// for, so that `no` is not a boolean and 0554 no octal number.
struct Node {
  enum class Kind { kNull, kScalar, kSequence, kMap };
  struct Entry;

  Kind kind = Kind::kNull;
  Position position;      ///< of the value; a null has its key's
  Position key_position;  ///< of the key that names it; elsewhere that of the value
  std::string path;       ///< "feeds.gate.input.url", "feeds.gate.encodes.live.video.codec[0]"
  std::string text;       ///< scalars
  std::vector<Node> items;
  std::vector<Entry> entries;  ///< in file order, keys unique

  bool is_map() const { return kind == Kind::kMap; }
  /// The value of that key; nullptr when there is none or this is no map.
  const Node* find(std::string_view key) const;
  const Node* find(std::initializer_list<std::string_view> keys) const;
};

struct Node::Entry {
  std::string key;
  Node value;
};

/// `over` laid over `base`: maps merge by key, everything else is replaced, null removes (one that
/// has nothing to remove stays, for the reader to report). The merged map has the place and path
/// of `over`, its values keep theirs.
Node merge(const Node& base, const Node& over);

/// Parses one YAML document. Syntax errors, duplicate keys, `<<`, tags, a second document and bytes
/// that are no text go to `problems`; what was understood is returned all the same (a null node
/// when nothing was).
Node parse_yaml(std::string_view text, Problems& problems);

}  // namespace framelane
