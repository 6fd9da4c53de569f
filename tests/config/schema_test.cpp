#include "config/schema.hpp"

#include <gmock/gmock.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>

#include "tests/config/source_root.hpp"
#include "tests/config/support.hpp"

namespace framelane {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

/// A path of keys. "*" stands for a name that the user chooses.
using Path = std::vector<std::string>;

/// Every path of keys that the schema allows, depth first.
void collect(const json& schema, const json& node, const Path& path, std::vector<Path>& paths) {
  if (node.contains("$ref")) {
    const std::string name = node["$ref"];
    collect(schema, schema.at(json::json_pointer(name.substr(1))), path, paths);
  }
  for (const json& alternative : node.value("anyOf", json::array())) {
    collect(schema, alternative, path, paths);
  }
  const json properties = node.value("properties", json::object());
  for (const auto& [key, value] : properties.items()) {
    Path longer = path;
    longer.push_back(key);
    paths.push_back(longer);
    collect(schema, value, longer, paths);
  }
  for (const json& value : node.value("patternProperties", json::object())) {
    Path longer = path;
    longer.emplace_back("*");
    collect(schema, value, longer, paths);
  }
}

std::vector<Path> schema_paths() {
  const json schema = json::parse(config_schema());
  std::vector<Path> paths;
  collect(schema, schema, {}, paths);
  return paths;
}

/// A configuration with this key alone, set to `value`.
std::string config_with(const Path& path, const std::string& value) {
  std::string text;
  for (const std::string& key : path) text += "{" + (key == "*" ? "name" : key) + ": ";
  return text + value + std::string(path.size(), '}');
}

std::string all_problems(const std::string& text) {
  std::string all;
  for (const std::string& line : test::problems_of(text)) all += line + "\n";
  return all;
}

TEST(SchemaTest, KnowsTheKeysOfTheContract) {
  const std::vector<Path> paths = schema_paths();
  const auto has = [&](const Path& path) {
    return std::find(paths.begin(), paths.end(), path) != paths.end();
  };
  EXPECT_TRUE(has({"admin", "listen"}));
  EXPECT_TRUE(has({"defaults", "input", "reconnect", "max"}));
  EXPECT_TRUE(has({"profiles", "*", "encodes", "*", "video", "codec", "options"}));
  EXPECT_TRUE(has({"feeds", "*", "profile"}));
  EXPECT_TRUE(has({"feeds", "*", "outputs", "*", "keep", "age"}));
  EXPECT_TRUE(has({"feeds", "*", "outputs", "*", "keep", "min_free"}));
  EXPECT_FALSE(has({"defaults", "profile"}));
}

TEST(SchemaTest, ReaderKnowsEveryKeyOfTheSchema) {
  const std::vector<Path> paths = schema_paths();
  ASSERT_GT(paths.size(), 150U);
  for (const Path& path : paths) {
    const std::string text = config_with(path, "[[wrong]]");
    const std::string problems = all_problems(text);
    EXPECT_THAT(problems, Not(HasSubstr("not a known key"))) << text;
    EXPECT_NE(problems, "") << text;
  }
}

TEST(SchemaTest, ReaderRefusesKeysBesideThoseOfTheSchema) {
  for (Path path : schema_paths()) {
    path.back() += "_x";
    const std::string text = config_with(path, "1");
    EXPECT_THAT(all_problems(text), HasSubstr(path.back() + ": is not a known key")) << text;
  }
}

TEST(SchemaTest, RefusesUnknownKeysInEveryMap) {
  const json schema = json::parse(config_schema());
  const std::function<void(const json&)> check = [&](const json& node) {
    if (node.is_object() && node.value("type", json()) == "object") {
      EXPECT_TRUE(node.contains("additionalProperties")) << node.dump();
    }
    if (!node.is_structured()) return;
    for (const json& child : node) check(child);
  };
  check(schema);
}

TEST(SchemaTest, DocumentationNamesEveryKey) {
  std::ifstream file(test::source_root() / "docs" / "configuration.md");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  for (const Path& path : schema_paths()) {
    EXPECT_NE(text.find("`" + path.back() + "`"), std::string::npos) << path.back();
  }
}

// The only test that needs Debian's python3-jsonschema and python3-yaml.
TEST(SchemaTest, IndependentValidatorAcceptsTheExampleAndRefusesMistakes) {
  const std::string python = "/usr/bin/python3";
  if (std::system((python + " -c 'import jsonschema, yaml' 2>/dev/null").c_str()) != 0) {
    GTEST_SKIP() << "python3-jsonschema or python3-yaml is not installed";
  }
  std::string schema_path = (std::filesystem::temp_directory_path() / "framelane-XXXXXX").string();
  const int fd = ::mkstemp(schema_path.data());
  ASSERT_GE(fd, 0);
  ::close(fd);
  std::ofstream(schema_path) << config_schema();
  const auto root = test::source_root();
  const std::string command =
      python + " '" + (root / "tests" / "config" / "check_schema.py").string() + "' '" +
      schema_path + "' '" + (root / "config" / "framelane.example.yaml").string() + "'";
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  std::filesystem::remove(schema_path);
}

}  // namespace
}  // namespace framelane
