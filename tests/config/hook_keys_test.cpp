// The key hooks.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "pipeline/base/redact.hpp"
#include "tests/config/support.hpp"

namespace framelane {
namespace {

using test::load;
using test::problems_of;
using test::with_environment;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string with_hooks(const std::string& hooks) {
  return "hooks: " + hooks + "\nfeeds: {a: {input: {url: x}}}\n";
}

TEST(HookKeysTest, AHookHasItsHostsNameAndTenSeconds) {
  const auto hooks =
      load(with_hooks("[{on: segment, url: 'https://store.example.org:8443/in'}]")).hooks;
  ASSERT_EQ(hooks.size(), 1U);
  EXPECT_EQ(hooks[0].name, "store.example.org");
  EXPECT_EQ(hooks[0].url, "https://store.example.org:8443/in");
  EXPECT_EQ(hooks[0].secret, "");
  EXPECT_EQ(hooks[0].timeout, std::chrono::seconds(10));
  EXPECT_TRUE(hooks[0].on_segment);
  EXPECT_FALSE(hooks[0].on_incident);
}

TEST(HookKeysTest, AllOfItsKeysAreRead) {
  const auto hooks =
      load(with_hooks("\n  - {name: store, on: [incident, segment], url: 'http://h/', "
                      "secret: 0123456789abcdef, timeout: 2s}\n"
                      "  - {on: incident, url: 'http://h/other'}"))
          .hooks;
  ASSERT_EQ(hooks.size(), 2U);
  EXPECT_EQ(hooks[0].name, "store");
  EXPECT_EQ(hooks[0].secret, "0123456789abcdef");
  EXPECT_EQ(hooks[0].timeout, std::chrono::seconds(2));
  EXPECT_TRUE(hooks[0].on_segment && hooks[0].on_incident);
  EXPECT_EQ(hooks[1].name, "h");
}

TEST(HookKeysTest, NoHooksAreNone) { EXPECT_THAT(load(with_hooks("[]")).hooks, IsEmpty()); }

TEST(HookKeysTest, SecretsAreMasked) {
  load(
      with_hooks("[{on: segment, url: 'https://u:hook-pass-1@h/x?token=hook-token-2', "
                 "secret: hook-secret-3456}]"));
  EXPECT_EQ(redact("hook-pass-1 hook-token-2 hook-secret-3456"), "*** *** ***");
}

TEST(HookKeysTest, MistakesAreReportedWithTheirPlaces) {
  EXPECT_THAT(
      problems_of(with_hooks("[{url: 'ftp://h/', on: [segments], x: 1}, {on: []}, 5]")),
      ElementsAre(
          "f.yaml:1:15: hooks[0].url: is not a URL of http:// or https://, the only ones that "
          "events "
          "are sent to",
          "f.yaml:1:32: hooks[0].on[0]: must be one of segment, incident or a list of these, not "
          "\"segments\"; did you mean \"segment\"?",
          "f.yaml:1:43: hooks[0].x: is not a known key; known here: on, url, secret, name, timeout",
          "f.yaml:1:50: hooks[1].url: is missing; say where events are sent",
          "f.yaml:1:55: hooks[1].on: names nothing; name segment, incident or both",
          "f.yaml:1:60: hooks[2]: must be a map with keys such as on, url, secret, name, timeout, "
          "not \"5\""));
}

TEST(HookKeysTest, AUrlThatCannotBeReadIsWrong) {
  for (const char* url :
       {"https://", "h", "/in", "http://h:99999/", "http://h h/", "https://?x", "http:///x"}) {
    EXPECT_THAT(problems_of(with_hooks("[{on: segment, url: '" + std::string(url) + "'}]")),
                ElementsAre(HasSubstr("hooks[0].url: is not a ")))
        << url;
  }
}

TEST(HookKeysTest, AUrlHasNoPort0AndNoFragment) {
  EXPECT_THAT(
      problems_of(with_hooks("[{on: segment, url: 'http://h:0/'}, {on: segment, name: b, url: "
                             "'https://h/in#x'}, {on: segment, name: c, url: 'http://h/in%23x'}]")),
      ElementsAre("f.yaml:1:28: hooks[0].url: has port 0, where nothing can listen; write the "
                  "receiver's port",
                  "f.yaml:1:72: hooks[1].url: has a fragment (#), which no receiver gets; leave it "
                  "out, or write # as %23"));
}

TEST(HookKeysTest, NoTwoHooksDeliverTheSame) {
  EXPECT_THAT(
      problems_of(with_hooks("[{on: segment, url: 'http://h/a'}, {on: incident, name: b, url: "
                             "'http://h/a'}, {on: [segment], name: c, url: 'http://h/a'}, {on: "
                             "[segment, incident], name: d, url: 'http://h/a'}]")),
      ElementsAre("f.yaml:1:117: hooks[2].url: is that of another hook, so each segment would come "
                  "twice; leave segment out of one of the two, or remove one",
                  HasSubstr("hooks[3].url: is that of another hook, so each incident would come")));
}

TEST(HookKeysTest, ASecretMustNotBeGuessed) {
  EXPECT_THAT(problems_of(with_hooks("[{on: segment, url: 'http://h/', secret: short-secret}]")),
              ElementsAre(AllOf(HasSubstr("f.yaml:1:49: hooks[0].secret: has less than 16"),
                                HasSubstr("openssl rand -hex 32"), Not(HasSubstr("short")))));
}

TEST(HookKeysTest, TwoHooksNeedTwoNames) {
  const auto problems = problems_of(
      with_hooks("[{on: segment, url: 'http://h/a'}, {on: incident, url: 'http://h/b'}]"));
  EXPECT_THAT(problems, ElementsAre("f.yaml:1:43: hooks[1]: is the second hook that is called "
                                    "\"h\"; give it another name"));
}

TEST(HookKeysTest, WhatIsNotKnownIsNotChecked) {
  LoadOptions options = with_environment({});
  options.require_environment = false;
  EXPECT_THAT(
      problems_of(with_hooks("[{on: segment, url: '${A}', secret: '${B}'}, {on: segment, url: "
                             "'${C}'}, {on: segment, url: 'https://h/${D}'}, {on: segment, name: "
                             "b, url: 'https://h/${E}'}]"),
                  options),
      IsEmpty());
}

}  // namespace
}  // namespace framelane
