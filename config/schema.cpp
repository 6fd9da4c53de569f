#include "config/schema.hpp"

#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "config/document.hpp"

namespace framelane {
namespace {

using Json = nlohmann::ordered_json;

/// Renders shapes as JSON Schema.
class SchemaWriter {
 public:
  /// `removable`: the value may also be null, which removes what is inherited.
  Json write(const Shape& shape, bool removable) {
    if (!shape.definition.empty()) return reference(shape);
    std::vector<Json> alternatives;
    if (!shape.words.empty()) alternatives.push_back({{"enum", shape.words}});
    if (shape.scalar != nullptr) write_scalar(shape, alternatives);
    if (!alternatives.empty() && shape.scalar != &kText && shape.scalar != &kAnyScalar) {
      alternatives.push_back({{"$ref", "#/$defs/variable"}});
    }
    // Lists are replaced as a whole, so a value in one is never inherited and null removes nothing.
    const bool inherits = removable && !shape.list;
    if (!shape.properties.empty()) alternatives.push_back(write_properties(shape, inherits));
    if (shape.element) alternatives.push_back(write_named(shape, inherits));
    if (shape.items) {
      alternatives.push_back(write_list(shape, write(*shape.items, false)));
    }
    if (shape.list) {
      alternatives.push_back(write_list(shape, any_of(alternatives)));
    }
    if (removable) alternatives.push_back({{"type", "null"}});
    return any_of(alternatives);
  }

  Json definitions() const { return definitions_; }

 private:
  static Json any_of(const std::vector<Json>& alternatives) {
    if (alternatives.size() == 1) return alternatives.front();
    return {{"anyOf", alternatives}};
  }

  static Json write_list(const Shape& shape, Json item) {
    Json list{{"type", "array"}, {"minItems", shape.least_items}};
    if (shape.most_items != Shape().most_items) list["maxItems"] = shape.most_items;
    list["items"] = std::move(item);
    return list;
  }

  Json reference(const Shape& shape) {
    const std::string name(shape.definition);
    if (!definitions_.contains(name)) {
      definitions_[name] = nullptr;  // first, so that nested definitions come after it
      definitions_[name] = write_properties(shape, true);
    }
    return {{"$ref", "#/$defs/" + name}};
  }

  static void write_scalar(const Shape& shape, std::vector<Json>& alternatives) {
    const ScalarType& type = *shape.scalar;
    if (type.json_type == "any") {
      alternatives.push_back({{"type", {"string", "number", "boolean"}}});
      return;
    }
    if (&type == &kQuarterTurns) {
      alternatives.push_back({{"enum", {0, 90, 180, 270}}});
    } else if (!type.json_type.empty()) {
      Json number{{"type", type.json_type}};
      if (type.json_type == "integer") {
        number["minimum"] = &type == &kSizeOrPercent ? 1 : shape.min;
        if (shape.max != std::numeric_limits<std::int64_t>::max()) number["maximum"] = shape.max;
      }
      // How many decimals a number has cannot be said: multipleOf divides in floating point, and
      // 0.1 is no multiple of 0.000001 there.
      if (&type == &kFraction) {
        number.update({{"minimum", 0}, {"maximum", 1}});
      } else if (type.json_type == "number") {
        number["exclusiveMinimum"] = 0;
      }
      alternatives.push_back(std::move(number));
    }
    if (!type.pattern.empty()) {
      alternatives.push_back({{"type", "string"}, {"pattern", type.pattern}});
    }
  }

  Json write_properties(const Shape& shape, bool removable) {
    Json properties = Json::object();
    Json required = Json::array();
    for (const Property& property : shape.properties) {
      Json value{{"description", property.help}};
      value.update(write(property.shape, removable));
      properties[std::string(property.name)] = std::move(value);
      if (property.required) required.push_back(property.name);
    }
    Json object{{"type", "object"}, {"properties", std::move(properties)}};
    if (!required.empty()) object["required"] = std::move(required);
    object["additionalProperties"] = false;
    return object;
  }

  Json write_named(const Shape& shape, bool removable) {
    Json element = write(*shape.element, removable);
    if (shape.any_names) return {{"type", "object"}, {"additionalProperties", std::move(element)}};
    Json patterns = Json::object();
    patterns[std::string(kIdentifier.pattern)] = std::move(element);
    return {{"type", "object"},
            {"patternProperties", std::move(patterns)},
            {"additionalProperties", false}};
  }

  Json definitions_{{"variable",
                     {{"description", "A value that comes from a variable."},
                      {"type", "string"},
                      {"pattern", R"(\$\{.+\})"}}}};
};

}  // namespace

std::string config_schema() {
  SchemaWriter writer;
  Json schema{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
              {"title", "framelane configuration"}};
  schema.update(writer.write(document_keys().shape(), false));
  schema["anyOf"] = {{{"required", {"feeds"}}}, {{"required", {"include"}}}};
  schema["$defs"] = writer.definitions();
  constexpr int kIndent = 2;
  return schema.dump(kIndent) + "\n";
}

}  // namespace framelane
