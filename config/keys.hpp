#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/problems.hpp"
#include "config/scalars.hpp"
#include "config/variables.hpp"
#include "config/yaml_tree.hpp"

// The key tables. Each key is written down once, with its type, its help text and what it sets.
// Both the reader and the schema use the tables.

namespace framelane {

struct Property;

/// What the value of a key may be: any of the alternatives that are given here.
struct Shape {
  std::vector<std::string_view> words;  ///< one of these
  const ScalarType* scalar = nullptr;   ///< a scalar of that type
  std::int64_t min = 0;                 ///< for types with a number
  std::int64_t max = std::numeric_limits<std::int64_t>::max();
  std::vector<Property> properties;      ///< a map of these keys
  std::shared_ptr<const Shape> element;  ///< a map of names the user chooses
  bool any_names = false;                ///< the names need not be identifiers
  std::shared_ptr<const Shape> items;    ///< a list of these
  bool list = false;                     ///< or a list of the above
  std::size_t least_items = 1;           ///< of such a list, in the schema
  std::size_t most_items = std::numeric_limits<std::size_t>::max();
  std::string_view definition;  ///< the name of this shape in the schema's $defs; empty: none
};

struct Property {
  std::string_view name;
  Shape shape;
  std::string_view help;
  bool required = false;  ///< in the schema. False if it can be inherited
};

Shape words(std::vector<std::string_view> list);
Shape of(const ScalarType& type);
Shape range(const ScalarType& type, std::int64_t min, std::int64_t max);
Shape map_of(Shape element);

/// What a value of this shape must be, for messages: "a duration such as 10s, from 10ms to 10m".
std::string expectation(const Shape& shape);
/// The scalar that `text` stands for; nothing if it is none of that shape, or beyond its limits.
std::optional<Value> parse(std::string_view text, const Shape& shape);

/// Reads scalars and reports what is wrong with them.
class Reader {
 public:
  Reader(Problems& problems, VariableScope scope) : problems_(problems), scope_(std::move(scope)) {}

  /// The scalar at `node`. Nothing if it does not fit the shape, which is reported, or if it
  /// contains a variable that has no value.
  std::optional<Value> scalar(const Node& node, const Shape& shape);
  /// False if `node` is no map, which is reported.
  bool require_map(const Node& node, const Shape& shape);
  void unknown_key(const Node::Entry& entry, const std::vector<Property>& known);
  void wrong_type(const Node& node, const Shape& shape);

  /// False if a variable in the text of `node` has no value, so that the text cannot be checked.
  bool is_certain(const Node& node) const;

  Problems& problems() { return problems_; }
  VariableScope& scope() { return scope_; }

 private:
  Problems& problems_;
  VariableScope scope_;
};

template <typename T>
struct Key {
  Property property;
  std::function<void(const Node&, T&, Reader&)> read;
};

/// The keys of one map, which set fields of a T.
template <typename T>
struct Section {
  std::vector<Key<T>> keys;

  std::vector<Property> properties() const {
    std::vector<Property> list;
    for (const Key<T>& key : keys) list.push_back(key.property);
    return list;
  }
  Shape shape() const {
    Shape shape;
    shape.properties = properties();
    return shape;
  }

  /// Reads the keys of `node` into `target`. A value that is wrong leaves its field as it was.
  void read(const Node& node, T& target, Reader& reader) const {
    const std::vector<Property> known = properties();
    if (!reader.require_map(node, shape())) return;
    for (const Node::Entry& entry : node.entries) {
      const Key<T>* key = find(entry.key);
      if (key == nullptr) {
        reader.unknown_key(entry, known);
      } else if (entry.value.kind == Node::Kind::kNull) {
        reader.wrong_type(entry.value, key->property.shape);
      } else {
        key->read(entry.value, target, reader);
      }
    }
  }

  const Key<T>* find(std::string_view name) const {
    for (const Key<T>& key : keys) {
      if (key.property.name == name) return &key;
    }
    return nullptr;
  }
};

/// A key whose value is a scalar.
template <typename T>
Key<T> scalar(std::string_view name, const Shape& shape, std::string_view help,
              void (*set)(T&, const Value&)) {
  return {{name, shape, help}, [shape, set](const Node& node, T& target, Reader& reader) {
            if (const auto value = reader.scalar(node, shape)) set(target, *value);
          }};
}

/// A key whose value is a map of the known `keys`, which set fields of `select(target)`. `keys`
/// outlives the result.
template <typename T, typename U>
Key<T> section(std::string_view name, const Section<U>& keys, std::string_view help,
               U& (*select)(T&)) {
  return {{name, keys.shape(), help}, [&keys, select](const Node& node, T& target, Reader& reader) {
            keys.read(node, select(target), reader);
          }};
}

}  // namespace framelane
