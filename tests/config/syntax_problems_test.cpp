#include "tests/config/wrong_config.hpp"

namespace framelane {
namespace {

const std::vector<Wrong> kSyntax{
    {"Empty", "", {"f.yaml:1:1: the file is empty; it needs at least feeds"}},
    {"OnlyComments", "# nothing\n", {"f.yaml:1:1: the file is empty; it needs at least feeds"}},
    {"NoMap", "- a\n", {"f.yaml:1:1: the file must be a map of keys: feeds and others"}},
    {"TabIndents", "feeds:\n\ta: {}\n", {"f.yaml:2:3: a tab must not indent; use spaces"}},
    {"TabIndentsNextLine",
     "log: {}\nfeeds: 1\n\ta: {}\n",
     {"f.yaml:3:1: a tab must not indent; use spaces"}},
    {"BracketIsNotClosed",
     "feeds: [a\n",
     {"f.yaml:2:1: a list's '[' is not closed by a ']' before this"}},
    {"BraceIsNotClosed",
     "feeds: {a: b\n",
     {"f.yaml:2:1: a map's '{' is not closed by a '}' before this"}},
    {"QuoteIsNotClosed", "feeds: {}\nlog: \"x\n", {"f.yaml:2:6: this quoted text is never closed"}},
    {"SingleQuoteIsNotClosed", "log: 'it''s\n", {"f.yaml:1:6: this quoted text is never closed"}},
    {"ColonInPlainText",
     "log: a: b\n",
     {"f.yaml:1:7: this ':' is not expected here; check the indentation, or put the text in "
      "quotes"}},
    {"WrongIndentation",
     "log:\n  level: info\n format: text\n",
     {"f.yaml:3:2: this does not continue the map above; check the indentation, or put the text "
      "in quotes"}},
    {"PlainTextBeginsWithAt",
     "log: @x\n",
     {"f.yaml:1:6: text cannot begin with this character; put it in quotes"}},
    {"UnknownAlias", "log: *x\n", {"f.yaml:1:6: there is no anchor of this name before this"}},
    {"SecondDocument",
     "feeds: {a: {input: {url: x}}}\n---\nlog: {}\n",
     {"f.yaml:2:1: a second document starts here; the configuration is one map of keys"}},
    {"NotUtf8", "# caf\xe9\n", {"f.yaml:1:6: this byte is not UTF-8 text; save the file as UTF-8"}},
    {"ControlCharacter",
     "log: x\x04\n",
     {"f.yaml:1:7: a control character is not allowed here; remove it"}},
    {"DuplicateKey",
     "log: {}\nfeeds: {a: {input: {url: x}}}\nlog: {}\n",
     {"f.yaml:3:1: log: is given twice; the first is in line 1"}},
    {"DuplicateFeed",
     "feeds:\n  a: {input: {url: x}}\n  a: {input: {url: y}}\n",
     {"f.yaml:3:3: feeds.a: is given twice; the first is in line 2"}},
    {"MergeKey",
     "defaults: &d {}\nfeeds: {a: {<<: *d, input: {url: x}}}\n",
     {"f.yaml:2:13: feeds.a.<<: merge keys are not supported; put what several feeds share under "
      "defaults or in a profile"}},
    {"Tag",
     feed_with(", ring: !!int 3"),
     {"f.yaml:1:36: feeds.a.ring: has a YAML tag; remove it: the key says what the value means"}},
    {"KeyIsAList",
     "? [a]\n: 1\nfeeds: {a: {input: {url: x}}}\n",
     {"f.yaml:1:3: a key must be plain text"}},
};
INSTANTIATE_TEST_SUITE_P(Syntax, WrongConfigTest, ::testing::ValuesIn(kSyntax), name_of);

}  // namespace
}  // namespace framelane
