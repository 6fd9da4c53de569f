#include "config/yaml_edit.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <iterator>

#include "config/config.hpp"
#include "tests/config/support.hpp"

namespace framelane {
namespace {

using ::testing::HasSubstr;

const std::vector<YamlEdit>& settings() {
  static const std::vector<YamlEdit> edits{{{"device"}, "cuda"},
                                           {{"defaults", "lanes"}, "4"},
                                           {{"defaults", "ring"}, "16"},
                                           {{"defaults", "slices"}, "auto"}};
  return edits;
}

/// The text with the edits, which must be possible and change nothing when they are made again.
std::string edited(const std::string& text, const std::vector<YamlEdit>& edits = settings()) {
  std::string why;
  const auto result = edit_yaml(text, edits, why);
  EXPECT_TRUE(result) << why;
  if (!result) return {};
  EXPECT_EQ(edit_yaml(*result, edits, why), result);
  return *result;
}

std::string refusal(const std::string& text, const YamlEdit& edit) {
  std::string why;
  const auto result = edit_yaml(text, {&edit, 1}, why);
  EXPECT_FALSE(result) << *result;
  return why;
}

TEST(YamlEditTest, ValuesAreReplacedAndTheirCommentsStayInTheirColumn) {
  EXPECT_EQ(edited("device: auto      # where\n"
                   "defaults:\n"
                   "  ring: 8         # places\n"
                   "  lanes: 12 # many\n"
                   "  slices: 2\n"
                   "feeds: {a: {}}\n"),
            "device: cuda      # where\n"
            "defaults:\n"
            "  ring: 16        # places\n"
            "  lanes: 4  # many\n"
            "  slices: auto\n"
            "feeds: {a: {}}\n");
}

TEST(YamlEditTest, AValueWithoutRoomBeforeItsCommentMovesIt) {
  EXPECT_EQ(edited("defaults:\n  ring: 8 # places\n", {{{"defaults", "ring"}, "128"}}),
            "defaults:\n  ring: 128 # places\n");
}

TEST(YamlEditTest, QuotedValuesAndThoseWithAnAnchorAreReplaced) {
  EXPECT_EQ(edited("defaults: {ring: \"8\", lanes: &n 3, slices: '2'}\n",
                   {{{"defaults", "ring"}, "16"},
                    {{"defaults", "lanes"}, "4"},
                    {{"defaults", "slices"}, "auto"}}),
            "defaults: {ring: 16, lanes: &n 4, slices: auto}\n");
}

TEST(YamlEditTest, AnAliasIsReplacedByTheValue) {
  EXPECT_EQ(edited("defaults: {ring: &n 8}\nfeeds: {a: {ring: *n, lanes: 2}}\n",
                   {{{"feeds", "a", "ring"}, "16"}}),
            "defaults: {ring: &n 8}\nfeeds: {a: {ring: 16, lanes: 2}}\n");
}

TEST(YamlEditTest, WhatIsMissingComesFirstInItsMapAndTogether) {
  EXPECT_EQ(edited("# A header.\n"
                   "\n"
                   "admin: {listen: \"\"}\n"
                   "# What all have.\n"
                   "defaults:  # shared\n"
                   "    # Where from.\n"
                   "    input: {timeout: 5s}\n"
                   "feeds: {a: {}}\n"),
            "# A header.\n"
            "\n"
            "admin: {listen: \"\"}\n"
            "device: cuda\n"
            "# What all have.\n"
            "defaults:  # shared\n"
            "    lanes: 4\n"
            "    ring: 16\n"
            "    slices: auto\n"
            "    # Where from.\n"
            "    input: {timeout: 5s}\n"
            "feeds: {a: {}}\n");
}

TEST(YamlEditTest, OneThatIsThereHasTheOthersBesideIt) {
  EXPECT_EQ(edited("device: cuda\ndefaults:\n  on_full: drop\n  ring: 8\n  input: {}\n"),
            "device: cuda\ndefaults:\n  on_full: drop\n  ring: 16\n  lanes: 4\n  slices: auto\n"
            "  input: {}\n");
}

TEST(YamlEditTest, WithoutDefaultsThereAreSomeAbove) {
  EXPECT_EQ(edited("# The file's own comment.\nfeeds:\n  a: {}\n"),
            "# The file's own comment.\n"
            "device: cuda\n"
            "defaults:\n"
            "  lanes: 4\n"
            "  ring: 16\n"
            "  slices: auto\n"
            "feeds:\n"
            "  a: {}\n");
}

TEST(YamlEditTest, MapsInFlowStyleStaySo) {
  EXPECT_EQ(edited("defaults: {input: {timeout: 5s}}  # short\nfeeds: {a: {}}\n"),
            "device: cuda\n"
            "defaults: {slices: auto, ring: 16, lanes: 4, input: {timeout: 5s}}  # short\n"
            "feeds: {a: {}}\n");
  EXPECT_EQ(edited("{feeds: {a: {}}}\n"),
            "{defaults: {slices: auto, ring: 16, lanes: 4}, device: cuda, feeds: {a: {}}}\n");
  EXPECT_EQ(edited("defaults: {}\n", {{{"defaults", "ring"}, "16"}}), "defaults: {ring: 16}\n");
  EXPECT_EQ(edited("defaults:\n  {\n    input: {}\n  }\n", {{{"defaults", "ring"}, "16"}}),
            "defaults:\n  {ring: 16,\n    input: {}\n  }\n");
}

TEST(YamlEditTest, NullsGetAValue) {
  EXPECT_EQ(
      edited("defaults:\nfeeds: {a: {lanes: null, ring: }}\n", {{{"defaults", "ring"}, "16"},
                                                                {{"feeds", "a", "lanes"}, "4"},
                                                                {{"feeds", "a", "ring"}, "16"}}),
      "defaults: {ring: 16}\nfeeds: {a: {lanes: 4, ring: 16 }}\n");
}

TEST(YamlEditTest, AFeedCanHaveSettingsOfItsOwn) {
  EXPECT_EQ(edited("feeds:\n  a:\n    input: {url: x}\n  b: {input: {url: y}}\n",
                   {{{"feeds", "a", "lanes"}, "4"}, {{"feeds", "b", "lanes"}, "6"}}),
            "feeds:\n  a:\n    lanes: 4\n    input: {url: x}\n  b: {lanes: 6, input: {url: y}}\n");
}

TEST(YamlEditTest, LineEndsAreThoseOfTheFile) {
  EXPECT_EQ(edited("device: auto\r\ndefaults:\r\n  ring: 8\r\nfeeds: {a: {}}\r\n"),
            "device: cuda\r\ndefaults:\r\n  ring: 16\r\n  lanes: 4\r\n  slices: auto\r\n"
            "feeds: {a: {}}\r\n");
}

TEST(YamlEditTest, AFileThatDoesNotEndItsLastLineStaysSo) {
  EXPECT_EQ(edited("device: cuda\nfeeds: {a: {}}\ndefaults:\n  ring: 16\n  lanes: 4"),
            "device: cuda\nfeeds: {a: {}}\ndefaults:\n  ring: 16\n  lanes: 4\n  slices: auto");
  EXPECT_EQ(edited("feeds: {a: {}}\ndefaults:\n  ring: 8", {{{"defaults", "ring"}, "16"}}),
            "feeds: {a: {}}\ndefaults:\n  ring: 16");
}

TEST(YamlEditTest, AByteOrderMarkAndOtherLettersAreKept) {
  EXPECT_EQ(edited("\xef\xbb\xbf"
                   "defaults: {ring: 8}  # Plätze\n",
                   {{{"defaults", "ring"}, "16"}}),
            "\xef\xbb\xbf"
            "defaults: {ring: 16}  # Plätze\n");
}

TEST(YamlEditTest, TheExampleChangesInNothingElse) {
  std::ifstream file(test::source_root() / "config/framelane.example.yaml");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::string expected = text;
  const auto put = [&expected](std::string_view from, std::string_view to) {
    ASSERT_NE(expected.find(from), std::string::npos) << from;
    expected.replace(expected.find(from), from.size(), to);
  };
  put("device: auto  ", "device: cuda  ");
  put("ring: 8  ", "ring: 16 ");
  put("lanes: 3 ", "lanes: 4 ");
  EXPECT_EQ(edited(text), expected);
}

TEST(YamlEditTest, WhatCannotBeSetSimplyIsRefusedWithTheReason) {
  EXPECT_THAT(refusal("a: &d {ring: 8}\ndefaults: *d\n", {{"defaults", "lanes"}, "4"}),
              HasSubstr("defaults.lanes cannot be set: it would stand in an alias"));
  EXPECT_THAT(refusal("defaults: {ring: &n 8, lanes: *n}\n", {{"defaults", "ring"}, "16"}),
              HasSubstr("defaults.ring cannot be set without changing something else; set it to 16 "
                        "by hand"));
  EXPECT_THAT(refusal("defaults:\n  ring:\n    8\n", {{"defaults", "ring"}, "16"}),
              HasSubstr("its value is not in the key's line"));
  EXPECT_THAT(refusal("defaults:\n  ? ring\n  : 8\n", {{"defaults", "ring"}, "16"}),
              HasSubstr("its key is not written as a plain one"));
  EXPECT_THAT(refusal("feeds: {a: {}}\n", {{"feeds", "b", "ring"}, "16"}),
              HasSubstr("feeds.b.ring cannot be set: there is no such map"));
  EXPECT_THAT(refusal("defaults: 3\n", {{"defaults", "ring"}, "16"}),
              HasSubstr("it does not stand in a map"));
}

}  // namespace
}  // namespace framelane
