#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/problems.hpp"
#include "config/yaml_tree.hpp"

namespace framelane {
namespace {

// Limits, because aliases are copied: a few lines could otherwise need any amount of memory.
constexpr std::size_t kMaxNodes = 200'000;
constexpr std::size_t kMaxDepth = 64;
constexpr std::size_t kMaxKey = 256;

Position position_of(const YAML::Mark& mark) {
  if (mark.is_null()) return {};
  return {mark.line + 1, mark.column + 1};
}

std::string printable(std::string_view key) {
  std::string text(key);
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return text;
}

/// What a node counts towards kMaxNodes. A long path or text counts as several values, because both
/// are copied with the node.
std::size_t cost_of(const std::string& path, const std::string& text) {
  constexpr std::size_t kBytesPerValue = 256;
  return 1 + (path.size() + text.size()) / kBytesPerValue;
}

std::size_t cost_of(const Node& node) {
  std::size_t cost = cost_of(node.path, node.text);
  for (const Node& item : node.items) cost += cost_of(item);
  for (const Node::Entry& entry : node.entries) cost += cost_of(entry.value);
  return cost;
}

std::size_t depth(const Node& node) {
  std::size_t deepest = 0;
  for (const Node& item : node.items) deepest = std::max(deepest, depth(item));
  for (const Node::Entry& entry : node.entries) deepest = std::max(deepest, depth(entry.value));
  return deepest + 1;
}

void set_path(Node& node, const std::string& path) {
  node.path = path;
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    set_path(node.items[i], path + "[" + std::to_string(i) + "]");
  }
  for (Node::Entry& entry : node.entries) {
    set_path(entry.value, (path.empty() ? "" : path + ".") + printable(entry.key));
  }
}

/// Thrown to leave the parser where reading on makes no sense. The problem has been added.
struct StopParsing {};

/// Makes nodes from yaml-cpp's events. The node tree of yaml-cpp itself would accept duplicate keys
/// and does not have the places of keys.
class TreeBuilder final : public YAML::EventHandler {
 public:
  TreeBuilder(std::string_view text, Problems& problems) : text_(text), problems_(problems) {}

  std::optional<Node>& root() { return root_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (!root_) return;
    problems_.add(position_of(mark), "",
                  "a second document starts here; the configuration is one map of keys");
    throw StopParsing{};
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    finish(make(Node::Kind::kNull, mark), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) {
      problems_.add(position_of(mark), path(),
                    "this alias is inside the value it stands for; write the value out");
      throw StopParsing{};
    }
    const std::size_t alias_depth = open_.size() + depth(found->second);
    charge(cost_of(found->second), position_of(mark), alias_depth);
    Node copy = found->second;
    copy.key_position = position_of(mark);
    if (copy.kind == Node::Kind::kNull) copy.position = copy.key_position;
    set_path(copy, path());
    finish(std::move(copy), 0);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    Node node = make(Node::Kind::kScalar, mark);
    check_tag(node, tag);
    if (tag == "!") check_closing_quote(mark);
    node.text = value;
    finish(std::move(node), anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    start(Node::Kind::kSequence, mark, tag, anchor);
  }
  void OnSequenceEnd() override { end(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    start(Node::Kind::kMap, mark, tag, anchor);
  }
  void OnMapEnd() override { end(); }

 private:
  /// A map or sequence whose end has not been reached.
  struct Open {
    Node node;
    YAML::anchor_t anchor = 0;
    std::optional<std::string> key;  ///< of a map: the key whose value comes next
    Position key_position;
    bool discard = false;              ///< the key was wrong: its value is ignored
    std::map<std::string, int> lines;  ///< of a map: the line of each key
  };

  /// The path of the value that comes next.
  std::string path() const {
    if (open_.empty()) return "";
    const Open& parent = open_.back();
    if (parent.node.kind == Node::Kind::kSequence) {
      return parent.node.path + "[" + std::to_string(parent.node.items.size()) + "]";
    }
    if (!parent.key) return parent.node.path;
    return (parent.node.path.empty() ? "" : parent.node.path + ".") + printable(*parent.key);
  }

  Node make(Node::Kind kind, const YAML::Mark& mark) {
    Node node;
    node.kind = kind;
    node.position = position_of(mark);
    node.key_position = node.position;
    node.path = path();
    charge(cost_of(node.path, ""), node.position, open_.size() + 1);
    return node;
  }

  void charge(std::size_t cost, Position position, std::size_t levels) {
    cost_ += cost;
    if (cost_ <= kMaxNodes && levels <= kMaxDepth) return;
    problems_.add(position, path(),
                  levels > kMaxDepth
                      ? "is nested more than " + std::to_string(kMaxDepth) + " levels deep"
                      : "makes the file, with all aliases written out, larger than " +
                            std::to_string(kMaxNodes) + " values");
    throw StopParsing{};
  }

  void check_tag(const Node& node, const std::string& tag) {
    // yaml-cpp gives "?" for a plain value without a tag and "!" for a quoted one.
    if (tag.empty() || tag == "?" || tag == "!") return;
    problems_.add(node, "has a YAML tag; remove it: the key says what the value means");
  }

  // yaml-cpp accepts the end of the file in place of the closing quote, so that a file that is cut
  // off in a quoted text would be valid.
  void check_closing_quote(const YAML::Mark& mark) {
    const std::size_t open =
        text_.find_first_of("\"'", static_cast<std::size_t>(std::max(mark.pos, 0)));
    if (open == std::string_view::npos) return;
    const char quote = text_[open];
    for (std::size_t i = open + 1; i < text_.size(); ++i) {
      const bool doubled = quote == '\'' && text_.substr(i, 2) == "''";
      if (doubled || (quote == '"' && text_[i] == '\\')) {
        ++i;  // escaped
      } else if (text_[i] == quote) {
        return;
      }
    }
    problems_.add(position_of(mark), "", "this quoted text is never closed");
    throw StopParsing{};
  }

  void start(Node::Kind kind, const YAML::Mark& mark, const std::string& tag,
             YAML::anchor_t anchor) {
    Open open;
    open.node = make(kind, mark);
    open.anchor = anchor;
    check_tag(open.node, tag);
    open_.push_back(std::move(open));
  }

  void end() {
    Open done = std::move(open_.back());
    open_.pop_back();
    finish(std::move(done.node), done.anchor);
  }

  void finish(Node node, YAML::anchor_t anchor) {
    if (anchor != 0) {
      charge(cost_of(node), node.position, open_.size() + 1);
      anchors_.insert_or_assign(anchor, node);
    }
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = open_.back();
    if (parent.node.kind == Node::Kind::kSequence) {
      parent.node.items.push_back(std::move(node));
    } else if (!parent.key) {
      take_key(parent, node);
    } else {
      take_value(parent, std::move(node));
    }
  }

  void take_key(Open& map, const Node& node) {
    map.key_position = node.position;
    map.key = node.text;
    map.discard = true;
    if (node.kind != Node::Kind::kScalar) {
      problems_.add(node, "a key must be plain text");
      map.key = "?";
    } else if (node.text.size() > kMaxKey) {
      // The path of every value below would contain the key.
      map.key = "?";
      problems_.add(node.position, path(),
                    "a key must not be longer than " + std::to_string(kMaxKey) + " bytes");
    } else if (node.text == "<<") {
      problems_.add(node.position, path(),
                    "merge keys are not supported; put what several feeds share under defaults "
                    "or in a profile");
    } else if (const auto [first, is_new] = map.lines.emplace(node.text, node.position.line);
               !is_new) {
      problems_.add(node.position, path(),
                    "is given twice; the first is in line " + std::to_string(first->second));
    } else {
      map.discard = false;
    }
  }

  void take_value(Open& map, Node node) {
    if (!map.discard) {
      node.key_position = map.key_position;
      // yaml-cpp places a missing value at the next token.
      if (node.kind == Node::Kind::kNull) node.position = map.key_position;
      map.node.entries.push_back({std::move(*map.key), std::move(node)});
    }
    map.key.reset();
  }

  std::string_view text_;
  Problems& problems_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Node> anchors_;
  std::size_t cost_ = 0;  ///< in values, with the copies that anchors and aliases make
  std::optional<Node> root_;
};

/// Explains yaml-cpp's terse messages to somebody who edits a file.
std::string explain(const std::string& message) {
  static const std::map<std::string_view, std::string_view> texts{
      {YAML::ErrorMsg::TAB_IN_INDENTATION, "a tab must not indent; use spaces"},
      {YAML::ErrorMsg::MAP_VALUE,
       "this ':' is not expected here; check the indentation, or put the text in quotes"},
      {YAML::ErrorMsg::END_OF_MAP,
       "this does not continue the map above; check the indentation, or put the text in quotes"},
      {YAML::ErrorMsg::END_OF_SEQ,
       "this does not continue the list above; check the indentation, or put the text in quotes"},
      {YAML::ErrorMsg::END_OF_SEQ_FLOW, "a list's '[' is not closed by a ']' before this"},
      {YAML::ErrorMsg::END_OF_MAP_FLOW, "a map's '{' is not closed by a '}' before this"},
      {YAML::ErrorMsg::UNKNOWN_TOKEN, "text cannot begin with this character; put it in quotes"},
      {YAML::ErrorMsg::UNKNOWN_ANCHOR, "there is no anchor of this name before this"},
      {YAML::ErrorMsg::FLOW_END, "this bracket closes nothing"},
      {YAML::ErrorMsg::BLOCK_ENTRY, "a list item cannot begin here; check the indentation"},
  };
  for (const auto& [begin, text] : texts) {
    if (message.starts_with(begin)) return std::string(text);  // yaml-cpp 0.8 adds an anchor's name
  }
  return "is not valid YAML: " + message;
}

bool tab_indents(std::string_view text, int line) {
  std::size_t begin = 0;
  for (int i = 1; i < line; ++i) {
    begin = text.find('\n', begin);
    if (begin == std::string_view::npos) return false;
    ++begin;
  }
  const std::size_t end = text.find_first_not_of(" \t", begin);
  return text.substr(begin, end == std::string_view::npos ? end : end - begin).find('\t') !=
         std::string_view::npos;
}

/// The length of the UTF-8 character at `i`; 0 if there is none. Overlong forms, surrogates and
/// values past U+10FFFF are none.
std::size_t utf8_length(std::string_view text, std::size_t i) {
  const auto byte = [&](std::size_t k) {
    return i + k < text.size() ? static_cast<unsigned char>(text[i + k]) : 0U;
  };
  const auto follows = [&](std::size_t k) { return (byte(k) & 0xc0U) == 0x80U; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return follows(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    if (!follows(1) || !follows(2)) return 0;
    if (first == 0xe0 && byte(1) < 0xa0) return 0;
    if (first == 0xed && byte(1) > 0x9f) return 0;
    return 3;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    if (!follows(1) || !follows(2) || !follows(3)) return 0;
    if (first == 0xf0 && byte(1) < 0x90) return 0;
    if (first == 0xf4 && byte(1) > 0x8f) return 0;
    return 4;
  }
  return 0;
}

/// Refuses what yaml-cpp would accept silently: it guesses encodings, replaces bytes that are not
/// UTF-8, and stops at a 0x04.
bool check_text(std::string_view text, Problems& problems) {
  Position position;
  for (std::size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    const std::size_t length = utf8_length(text, i);
    if (length == 0) {
      problems.add(position, "", "this byte is not UTF-8 text; save the file as UTF-8");
      return false;
    }
    if ((c < 0x20 && c != '\n' && c != '\r' && c != '\t') || c == 0x7f) {
      problems.add(position, "", "a control character is not allowed here; remove it");
      return false;
    }
    position.column += static_cast<int>(length);
    if (c == '\n') position = {position.line + 1, 1};
    i += length;
  }
  return true;
}

}  // namespace

Node parse_yaml(std::string_view text, Problems& problems) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  if (!check_text(text, problems)) return {};

  TreeBuilder builder(text, problems);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const StopParsing&) {
  } catch (const YAML::ParserException& error) {
    const Position position = position_of(error.mark);
    problems.add(position, "",
                 tab_indents(text, position.line) ? explain(YAML::ErrorMsg::TAB_IN_INDENTATION)
                                                  : explain(error.msg));
  }
  return std::move(builder.root()).value_or(Node{});
}

}  // namespace framelane
