#include "config/yaml_edit.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "config/problems.hpp"
#include "config/yaml_tree.hpp"

namespace framelane {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

/// Why an edit cannot be made; what it would be is said by who catches it.
struct Refused {
  std::string why;
};

std::string dotted(const std::vector<std::string>& path) {
  std::string text;
  for (const std::string& key : path) text += (text.empty() ? "" : ".") + key;
  return text;
}

/// One text, and one edit of it.
class Editor {
 public:
  Editor(std::string text, const Node& root) : text_(std::move(text)), root_(root) {
    line_starts_.push_back(0);
    for (std::size_t i = 0; i < text_.size(); ++i) {
      if (text_[i] == '\n') line_starts_.push_back(i + 1);
    }
    const std::size_t first = text_.find('\n');
    const bool dos = first != std::string::npos && first > 0 && text_[first - 1] == '\r';
    line_end_ = dos ? "\r\n" : "\n";
  }

  std::string apply(const YamlEdit& edit) {
    const Node::Entry* parent = nullptr;  // none: the file's own map
    for (std::size_t i = 0; i < edit.path.size(); ++i) {
      const Node& map = parent == nullptr ? root_ : parent->value;
      const Node::Entry* found = nullptr;
      for (const Node::Entry& entry : map.entries) {
        if (entry.key == edit.path[i]) found = &entry;
      }
      const bool last = i + 1 == edit.path.size();
      if (found == nullptr) {
        if (!last && (parent != nullptr || i + 2 != edit.path.size())) {
          throw Refused{"there is no such map"};
        }
        insert(parent, edit.path[i], last ? "" : edit.path[i + 1], edit.value);
        return std::move(text_);
      }
      parent = found;
      if (!last && found->value.kind == Node::Kind::kNull) {
        replace(*found, "{" + edit.path[i + 1] + ": " + edit.value + "}");
        return std::move(text_);
      }
    }
    const bool there =
        parent->value.kind == Node::Kind::kScalar && parent->value.text == edit.value;
    if (!there) replace(*parent, edit.value);
    return std::move(text_);
  }

 private:
  std::size_t offset(const Position& position) const {
    const auto line = static_cast<std::size_t>(position.line - 1);
    if (line >= line_starts_.size()) throw Refused{"its place was not found"};
    return std::min(line_starts_[line] + static_cast<std::size_t>(position.column - 1),
                    text_.size());
  }
  /// Of the next line, or the end of the text.
  std::size_t line_after(std::size_t at) const {
    const std::size_t end = text_.find('\n', at);
    return end == std::string::npos ? text_.size() : end + 1;
  }
  std::size_t line_of(std::size_t at) const {
    const std::size_t end = at == 0 ? std::string::npos : text_.rfind('\n', at - 1);
    return end == std::string::npos ? 0 : end + 1;
  }
  char at(std::size_t i) const { return i < text_.size() ? text_[i] : '\n'; }
  std::size_t skip_blanks(std::size_t i) const {
    while (at(i) == ' ' || at(i) == '\t') ++i;
    return i;
  }
  std::size_t skip_until(std::size_t i, std::string_view ends) const {
    return std::min(text_.find_first_of(ends, i), text_.size());
  }
  std::size_t after_quote(std::size_t i) const {
    const char quote = text_[i];
    for (++i; i < text_.size(); ++i) {
      if (quote == '"' && text_[i] == '\\') {
        ++i;
      } else if (text_[i] == quote && !(quote == '\'' && at(i + 1) == quote)) {
        return i + 1;
      } else if (text_[i] == quote) {
        ++i;
      }
    }
    throw Refused{"its quote does not end"};
  }

  std::size_t after_colon(const Node::Entry& entry) const {
    std::size_t i = offset(entry.value.key_position);
    if (at(i) == '"' || at(i) == '\'') {
      i = after_quote(i);
    } else if (std::string_view(text_).substr(i).starts_with(entry.key)) {
      i += entry.key.size();
    }
    i = skip_blanks(i);
    if (at(i) != ':') throw Refused{"its key is not written as a plain one"};
    return i + 1;
  }
  /// Where a value begins, after an anchor, if it has one; or the end of the line.
  std::size_t value_begin(const Node::Entry& entry) const {
    std::size_t i = skip_blanks(after_colon(entry));
    while (at(i) == '&' || at(i) == '!') i = skip_blanks(skip_until(i, " \t\r\n"));
    return i;
  }
  std::size_t value_end(const Node::Entry& entry, std::size_t begin) const {
    const std::string_view rest = std::string_view(text_).substr(begin);
    if (at(begin) == '*') return skip_until(begin, " \t\r\n,]}");
    if (entry.value.kind == Node::Kind::kNull) {
      for (const std::string_view word : {"null", "Null", "NULL", "~"}) {
        if (rest.starts_with(word)) return begin + word.size();
      }
      return begin;
    }
    if (entry.value.kind != Node::Kind::kScalar) throw Refused{"it is no single value"};
    if (at(begin) == '"' || at(begin) == '\'') return after_quote(begin);
    if (!rest.starts_with(entry.value.text)) throw Refused{"its value is not in the key's line"};
    return begin + entry.value.text.size();
  }

  void replace(const Node::Entry& entry, const std::string& value) {
    const std::size_t begin = value_begin(entry);
    const std::size_t end = value_end(entry, begin);
    if (begin == end) {  // nothing but, perhaps, blanks
      text_.insert(after_colon(entry), " " + value);
      return;
    }
    // A comment behind it stays in its column, where there is room.
    const std::size_t comment = skip_blanks(end);
    const std::size_t blanks = comment - end;
    std::size_t taken = 0;
    std::string padding;
    if (at(comment) == '#') {
      const std::size_t before = end - begin;
      if (value.size() > before) taken = std::min(value.size() - before, blanks - 1);
      if (value.size() < before) padding.assign(before - value.size(), ' ');
    }
    text_.replace(begin, end - begin + taken, value + padding);
  }

  /// A key that is not there, with a value or with a map of one key.
  void insert(const Node::Entry* parent, const std::string& key, const std::string& inner,
              const std::string& value) {
    const Node& map = parent == nullptr ? root_ : parent->value;
    if (!map.is_map()) throw Refused{"it does not stand in a map"};
    std::size_t begin = parent == nullptr ? offset(map.position) : value_begin(*parent);
    if (at(begin) == '*') throw Refused{"it would stand in an alias; write that map out"};
    const bool goes_on_below = at(begin) == '\n' || at(begin) == '\r' || at(begin) == '#';
    if (goes_on_below && at(offset(map.position)) == '{') begin = offset(map.position);
    if (at(begin) == '{') {
      const std::string one =
          inner.empty() ? key + ": " + value : key + ": {" + inner + ": " + value + "}";
      const bool at_end = at(begin + 1) == '\n' || at(begin + 1) == '\r';
      text_.insert(begin + 1, one + (map.entries.empty() ? "" : at_end ? "," : ", "));
      return;
    }
    if (map.entries.empty()) throw Refused{"the map it belongs to is empty"};
    const Position first = map.entries.front().value.key_position;
    const std::string indent(static_cast<std::size_t>(first.column - 1), ' ');
    std::string lines = indent + key + ":";
    if (inner.empty()) {
      lines += " " + value;
    } else {
      lines += line_end_ + indent + "  " + inner + ": " + value;
    }
    insert_lines(place_for(parent, map), lines);
  }

  /// The beginning of a line, or the end of the text.
  std::size_t place_for(const Node::Entry* parent, const Node& map) const {
    constexpr std::array<std::string_view, 3> kSiblings{"ring", "lanes", "slices"};
    std::size_t behind = 0;
    for (const Node::Entry& entry : map.entries) {
      if (parent == nullptr || std::ranges::find(kSiblings, entry.key) == kSiblings.end()) continue;
      behind = std::max(behind, line_after(offset(entry.value.key_position)));
    }
    if (behind > 0) return behind;
    if (parent != nullptr) return line_after(value_begin(*parent));
    constexpr std::array<std::string_view, 3> kFollowing{"defaults", "profiles", "feeds"};
    const auto following = std::ranges::find_if(map.entries, [&](const Node::Entry& entry) {
      return std::ranges::find(kFollowing, entry.key) != kFollowing.end();
    });
    const Node::Entry& next = following == map.entries.end() ? map.entries.front() : *following;
    // Above the comment that belongs to that key, unless it is the file's own.
    const std::size_t own = line_of(offset(next.value.key_position));
    std::size_t line = own;
    while (line > 0) {
      const std::size_t above = line_of(line - 1);
      if (at(skip_blanks(above)) != '#') return line;
      line = above;
    }
    return own;
  }

  void insert_lines(std::size_t place, const std::string& lines) {
    if (place == text_.size() && !text_.empty() && text_.back() != '\n') {
      text_ += line_end_ + lines;
    } else {
      text_.insert(place, lines + line_end_);
    }
  }

  std::string text_;
  const Node& root_;
  std::vector<std::size_t> line_starts_;
  std::string line_end_;
};

/// Everything that a file says, by its path.
void list_values(const Node& node, std::map<std::string, std::string>& values) {
  for (const Node& item : node.items) list_values(item, values);
  for (const Node::Entry& entry : node.entries) list_values(entry.value, values);
  if (!node.items.empty() || !node.entries.empty()) return;
  values[node.path] = static_cast<char>('0' + static_cast<int>(node.kind)) + node.text;
}

/// Whether the trees say the same but for the edit. An empty map or a null may have become one with
/// that value alone.
bool differ_in_nothing_else(const Node& before, const Node& after, const YamlEdit& edit) {
  std::map<std::string, std::string> old_values, new_values;
  list_values(before, old_values);
  list_values(after, new_values);
  const std::string path = dotted(edit.path);
  const Node* node = &after;
  for (const std::string& key : edit.path) {
    node = node->find(key);
    if (node == nullptr) return false;
  }
  if (node->kind != Node::Kind::kScalar || node->text != edit.value) return false;
  new_values.erase(path);
  std::erase_if(old_values, [&](const auto& value) {
    return value.first == path || path.starts_with(value.first + ".");
  });
  return old_values == new_values;
}

}  // namespace

std::optional<std::string> edit_yaml(std::string_view text, std::span<const YamlEdit> edits,
                                     std::string& why) {
  const std::string_view mark = text.starts_with(kByteOrderMark) ? kByteOrderMark : "";
  std::string edited(text.substr(mark.size()));
  for (const YamlEdit& edit : edits) {
    Problems problems("");
    const Node before = parse_yaml(edited, problems);
    try {
      edited = Editor(edited, before).apply(edit);
    } catch (const Refused& refused) {
      why = dotted(edit.path) + " cannot be set: " + refused.why + "; set it to " + edit.value +
            " by hand";
      return std::nullopt;
    }
    const Node after = parse_yaml(edited, problems);
    if (!problems.empty() || !differ_in_nothing_else(before, after, edit)) {
      why = dotted(edit.path) + " cannot be set without changing something else; set it to " +
            edit.value + " by hand";
      return std::nullopt;
    }
  }
  return std::string(mark) + edited;
}

}  // namespace framelane
