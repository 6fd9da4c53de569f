#include "config/keys.hpp"

#include <algorithm>

namespace framelane {
namespace {

bool has_limits(const Shape& shape) {
  return shape.max != std::numeric_limits<std::int64_t>::max();
}

bool within_limits(const Value& value, const Shape& shape) {
  return value.number >= shape.min && value.number <= shape.max;
}

std::string limits(const Shape& shape) {
  const std::string min = shape.scalar->format(shape.min);
  if (!has_limits(shape)) return "at least " + min;
  return "from " + min + " to " + shape.scalar->format(shape.max);
}

}  // namespace

Shape words(std::vector<std::string_view> list) {
  Shape shape;
  shape.words = std::move(list);
  return shape;
}

Shape of(const ScalarType& type) {
  Shape shape;
  shape.scalar = &type;
  return shape;
}

Shape range(const ScalarType& type, std::int64_t min, std::int64_t max) {
  Shape shape;
  shape.scalar = &type;
  shape.min = min;
  shape.max = max;
  return shape;
}

Shape map_of(Shape element) {
  Shape shape;
  shape.element = std::make_shared<const Shape>(std::move(element));
  return shape;
}

std::string expectation(const Shape& shape) {
  std::vector<std::string> alternatives;
  if (!shape.words.empty()) {
    alternatives.push_back((shape.words.size() > 1 ? "one of " : "") + join(shape.words));
  }
  if (shape.scalar != nullptr) alternatives.emplace_back(shape.scalar->expected);
  if (!shape.properties.empty()) {
    std::vector<std::string_view> names;
    for (const Property& property : shape.properties) names.push_back(property.name);
    alternatives.push_back("a map with keys such as " + join(names));
  }
  if (shape.element) alternatives.emplace_back("a map of names and their values");
  if (shape.items) alternatives.emplace_back("a list");
  if (shape.list) alternatives.emplace_back("a list of these");
  std::string text;
  for (std::size_t i = 0; i < alternatives.size(); ++i) {
    if (i > 0) text += i + 1 == alternatives.size() ? " or " : ", ";
    text += alternatives[i];
  }
  if (shape.scalar != nullptr && has_limits(shape)) text += ", " + limits(shape);
  return text;
}

std::optional<Value> parse(std::string_view text, const Shape& shape) {
  Value value;
  value.text = text;
  if (!shape.scalar->parse(text, value) || !within_limits(value, shape)) return std::nullopt;
  return value;
}

std::optional<Value> Reader::scalar(const Node& node, const Shape& shape) {
  if (node.kind != Node::Kind::kScalar) {
    wrong_type(node, shape);
    return std::nullopt;
  }
  Expansion expansion = expand(node.text, scope_);
  if (!expansion.problems.empty()) {
    for (std::string& problem : expansion.problems) problems_.add(node, std::move(problem));
    return std::nullopt;
  }
  Value value;
  value.text = std::move(expansion.text);
  if (!expansion.complete) {
    // Free text is usable without the missing values. Anything else cannot be parsed.
    const bool free_text = shape.scalar == &kText || shape.scalar == &kAnyScalar;
    return free_text && !scope_.syntax_only ? std::optional(std::move(value)) : std::nullopt;
  }

  const auto word = std::find(shape.words.begin(), shape.words.end(), value.text);
  if (word != shape.words.end()) {
    value.number = word - shape.words.begin();
    return value;
  }
  if (shape.scalar == nullptr || !shape.scalar->parse(value.text, value)) {
    wrong_type(node, shape);
    return std::nullopt;
  }
  if (!within_limits(value, shape)) {
    problems_.add(node, "must be " + limits(shape) + ", not " + in_quotes(node.text));
    return std::nullopt;
  }
  return value;
}

bool Reader::require_map(const Node& node, const Shape& shape) {
  if (!node.is_map()) wrong_type(node, shape);
  return node.is_map();
}

void Reader::wrong_type(const Node& node, const Shape& shape) {
  std::string text = "must be " + expectation(shape);
  switch (node.kind) {
    case Node::Kind::kNull:
      problems_.add(node,
                    "has no value, and nothing is inherited that null could remove; give it a "
                    "value, or remove the key");
      return;
    case Node::Kind::kMap:
      text += ", not a map";
      break;
    case Node::Kind::kSequence:
      text += ", not a list";
      break;
    case Node::Kind::kScalar:
      // Shows the text as written, without the values of variables. Where free text is expected
      // nothing is shown: it may be a secret in the wrong place.
      if (shape.scalar == &kText || shape.scalar == &kAnyScalar) break;
      text += ", not " + in_quotes(node.text);
      if (const std::string_view word = nearest(node.text, shape.words); !word.empty()) {
        text += "; did you mean " + in_quotes(word) + "?";
      }
      break;
  }
  problems_.add(node, std::move(text));
}

void Reader::unknown_key(const Node::Entry& entry, const std::vector<Property>& known) {
  const Node& value = entry.value;
  std::vector<std::string_view> names;
  for (const Property& property : known) names.push_back(property.name);
  const std::string_view guess = nearest(entry.key, names);
  problems_.add(
      value.key_position, value.path,
      "is not a known key; " + (guess.empty() ? "known here: " + join(names)
                                              : "did you mean " + in_quotes(guess) + "?"));
}

bool Reader::is_certain(const Node& node) const {
  return node.kind != Node::Kind::kScalar || expand(node.text, scope_).complete;
}

}  // namespace framelane
