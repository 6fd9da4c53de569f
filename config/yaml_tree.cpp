#include "config/yaml_tree.hpp"

namespace framelane {

const Node* Node::find(std::string_view key) const {
  for (const Entry& entry : entries) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

const Node* Node::find(std::initializer_list<std::string_view> keys) const {
  const Node* node = this;
  for (const std::string_view key : keys) {
    node = node->find(key);
    if (node == nullptr) return nullptr;
  }
  return node;
}

Node merge(const Node& base, const Node& over) {
  // The options of one encoder mean nothing to another, so `video.codec` is replaced as a whole
  // even if it is a map. (Under another key "codec" may be a name: an encode may be called codec.)
  const auto is_whole = [&over](std::string_view key) {
    return key == "codec" && (over.path.ends_with(".video") || over.path.ends_with(".audio"));
  };
  if (!base.is_map() || !over.is_map()) return over;

  Node merged = over;
  merged.entries = base.entries;
  for (const Node::Entry& entry : over.entries) {
    auto inherited = merged.entries.begin();
    while (inherited != merged.entries.end() && inherited->key != entry.key) ++inherited;
    if (inherited == merged.entries.end()) {
      merged.entries.push_back(entry);
    } else if (entry.value.kind == Node::Kind::kNull) {
      merged.entries.erase(inherited);
    } else if (is_whole(entry.key)) {
      inherited->value = entry.value;
    } else {
      inherited->value = merge(inherited->value, entry.value);
    }
  }
  return merged;
}

}  // namespace framelane
