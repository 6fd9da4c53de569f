#include "config/variables.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "pipeline/base/redact.hpp"
#include "tests/config/support.hpp"

namespace framelane {
namespace {

using test::with_environment;
using ::testing::HasSubstr;
using ::testing::Not;

/// A directory for secrets, which is removed after the test.
class VariablesTest : public ::testing::Test {
 protected:
  VariablesTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "framelane-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) std::abort();
    directory_ = pattern;
    options_ = with_environment({{"NAME", "value"},
                                 {"EMPTY", ""},
                                 {"NESTED", "${NAME} $$ $x"},
                                 {"ODD", "a:b@c/d?e#f%g h"},
                                 {"CREDENTIALS_DIRECTORY", directory_.string()}});
  }
  ~VariablesTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }

  void write(const std::string& name, std::string_view content) const {
    std::ofstream(directory_ / name, std::ios::binary) << content;
  }

  Expansion expand(std::string_view text) const {
    return framelane::expand(text, VariableScope{options_, "gate", "hls", false});
  }
  std::string problems_of(std::string_view text) const {
    std::string all;
    for (const std::string& problem : expand(text).problems) all += problem + "\n";
    return all.empty() ? all : all.substr(0, all.size() - 1);
  }
  std::string expanded(std::string_view text) const {
    const Expansion result = expand(text);
    EXPECT_EQ(result.problems, std::vector<std::string>());
    EXPECT_TRUE(result.complete);
    return result.text;
  }

  std::filesystem::path directory_;
  LoadOptions options_;
};

TEST_F(VariablesTest, TextWithoutVariablesStays) {
  EXPECT_EQ(expanded("rtsp://user:pw@host/%41"), "rtsp://user:pw@host/%41");
}

TEST_F(VariablesTest, NamesAndDefaults) {
  EXPECT_EQ(expanded("<${NAME}>"), "<value>");
  EXPECT_EQ(expanded("<${EMPTY}>"), "<>");
  EXPECT_EQ(expanded("<${NAME:-other}>"), "<value>");
  EXPECT_EQ(expanded("<${UNSET:-other:-x}>"), "<other:-x>");
  EXPECT_EQ(expanded("<${EMPTY:-other}>"), "<other>");
  EXPECT_EQ(expanded("<${UNSET:-}>"), "<>");
}

TEST_F(VariablesTest, FeedAndOutputNames) {
  EXPECT_EQ(expanded("/srv/${feed}/${output}.mp4"), "/srv/gate/hls.mp4");
}

TEST_F(VariablesTest, DoubledDollarIsOne) { EXPECT_EQ(expanded("$${NAME} $$$$"), "${NAME} $$"); }

TEST_F(VariablesTest, ValuesAreNotLookedAtAgain) {
  EXPECT_EQ(expanded("${NESTED}"), "${NAME} $$ $x");
}

TEST_F(VariablesTest, UserPartOfAUrlIsPercentEncoded) {
  EXPECT_EQ(expanded("rtsp://${NAME}:${ODD}@host/"),
            "rtsp://value:a%3Ab%40c%2Fd%3Fe%23f%25g%20h@host/");
}

TEST_F(VariablesTest, OtherPartsOfAUrlAreNotEncoded) {
  EXPECT_EQ(expanded("rtsp://${ODD}/x"), "rtsp://a:b@c/d?e#f%g h/x");
  EXPECT_EQ(expanded("rtsp://u@h/${ODD}?mail=a@b"), "rtsp://u@h/a:b@c/d?e#f%g h?mail=a@b");
  EXPECT_EQ(expanded("${ODD}@host"), "a:b@c/d?e#f%g h@host");
}

TEST_F(VariablesTest, PathOfASecretDoesNotEndTheUserPart) {
  write("password", "p@ss");
  EXPECT_EQ(expanded("rtsp://viewer:${file:" + (directory_ / "password").string() + "}@host/"),
            "rtsp://viewer:p%40ss@host/");
}

TEST_F(VariablesTest, RelativeSecretsAreInTheCredentialsDirectory) {
  write("password", "hunter2hunter2");
  EXPECT_EQ(expanded("${file:password}"), "hunter2hunter2");
}

TEST_F(VariablesTest, OneNewlineAtTheEndOfASecretIsNotPartOfIt) {
  write("one", "secret-one\n");
  EXPECT_EQ(expanded("${file:one}"), "secret-one");
}

TEST_F(VariablesTest, ControlCharactersInASecretAreAProblemThatDoesNotShowIt) {
  for (const std::string_view content :
       {"hidden\r\n", "hidden\n\n", "hid\nden", "hidden\t", "\x1bhidden", "hidden\x7f"}) {
    write("password", content);
    EXPECT_THAT(problems_of("${file:password}"),
                AllOf(HasSubstr("contains a control character"), Not(HasSubstr("hid"))));
  }
}

TEST_F(VariablesTest, SecretsAreRedactedFromThenOn) {
  write("password", "kept-out-of-logs");
  expanded("${file:password}");
  EXPECT_THAT(redact("it was kept-out-of-logs"), Not(HasSubstr("kept-out-of-logs")));
}

TEST_F(VariablesTest, OneFeedIsReadAgainWithThePresentSecretsAndNoOtherFeedsAreOpened) {
  write("gate", "0ld-w0rd");
  write("yard", "yard-w0rd");
  const Config config = test::load(R"(
defaults: {ring: 5}
profiles: {slow: {input: {timeout: 1m}}}
feeds:
  gate: {profile: slow, input: {url: "rtsp://viewer:${file:gate}@10.0.0.4/"}}
  yard: {input: {url: "rtsp://viewer:${file:yard}@10.0.0.5/"}}
)",
                                   options_);
  write("gate", "n3w-w0rd");
  std::filesystem::remove(directory_ / "yard");
  ASSERT_TRUE(config.names_files);
  const FeedResult gate = reread_feed(*config.tree, "gate", config.files, options_);
  ASSERT_TRUE(std::holds_alternative<FeedOptions>(gate));
  const FeedOptions& feed = std::get<FeedOptions>(gate);
  EXPECT_EQ(feed.name, "gate");
  EXPECT_EQ(feed.input.url, "rtsp://viewer:n3w-w0rd@10.0.0.4/");
  EXPECT_EQ(feed.input.timeout, std::chrono::minutes(1));
  EXPECT_EQ(feed.ring, 5);
  const FeedResult yard = reread_feed(*config.tree, "yard", config.files, options_);
  ASSERT_TRUE(std::holds_alternative<std::vector<Problem>>(yard));
  EXPECT_THAT(to_string(std::get<std::vector<Problem>>(yard).front()),
              HasSubstr("f.yaml:6:23: feeds.yard.input.url: the secret \"yard\" is neither"));
}

TEST_F(VariablesTest, WithoutASecretThereIsNothingToReadAgain) {
  EXPECT_FALSE(test::load("feeds: {gate: {input: {url: a.mp4}}}").names_files);
}

TEST_F(VariablesTest, UnsetNameIsAProblem) {
  EXPECT_EQ(problems_of("${UNSET}"),
            "the environment variable UNSET is not set; set it, or write ${UNSET:-default}");
}

TEST_F(VariablesTest, MissingSecretIsAProblem) {
  EXPECT_EQ(problems_of("${file:nothing}"),
            "the secret \"nothing\" is neither in $CREDENTIALS_DIRECTORY nor in /run/secrets; put "
            "a file of that name there");
  EXPECT_EQ(problems_of("${file:/nonexistent/x}"),
            "the secret file \"/nonexistent/x\" cannot be read: No such file or directory");
}

TEST_F(VariablesTest, SecretThatIsNoRegularFileIsAProblemAndDoesNotBlock) {
  ASSERT_EQ(::mkfifo((directory_ / "fifo").c_str(), 0600), 0);
  EXPECT_THAT(problems_of("${file:fifo}"), HasSubstr("it is a FIFO, not a regular file"));
}

TEST_F(VariablesTest, SecretMustBeTextOfReasonableSize) {
  write("zero", std::string_view("a\0b", 3));
  write("huge", std::string(70000, 'x'));
  EXPECT_THAT(problems_of("${file:zero}"), HasSubstr("contains a control character"));
  EXPECT_THAT(problems_of("${file:huge}"), HasSubstr("larger than 65536 bytes"));
}

TEST_F(VariablesTest, WithoutRequiredEnvironmentUnsetNamesAreEmpty) {
  options_.require_environment = false;
  const Expansion result = expand("<${UNSET}${file:nothing}${NAME}>");
  EXPECT_EQ(result.problems, std::vector<std::string>());
  EXPECT_EQ(result.text, "<value>");
  EXPECT_FALSE(result.complete);
}

TEST_F(VariablesTest, WrongSyntaxIsAProblem) {
  EXPECT_THAT(problems_of("pa$word"), HasSubstr("lone $"));
  EXPECT_THAT(problems_of("price: 5$"), HasSubstr("lone $"));
  EXPECT_THAT(problems_of("${NAME"), HasSubstr("no \"}\" closes"));
  EXPECT_THAT(problems_of("${}"), HasSubstr("none of ${NAME}"));
  EXPECT_THAT(problems_of("${9LIVES}"), HasSubstr("none of ${NAME}"));
  EXPECT_THAT(problems_of("${file:}"), HasSubstr("names no file"));
  EXPECT_THAT(problems_of("${UNSET:-${NAME}}"), HasSubstr("must not contain variables"));
}

TEST_F(VariablesTest, WrongSyntaxDoesNotShowTheText) {
  EXPECT_THAT(problems_of("${hunter2 hunter2}"), Not(HasSubstr("hunter2")));
}

TEST_F(VariablesTest, AVariableWhoseNameSaysSoIsASecretWhereverItStands) {
  options_ = with_environment({{"GATE_TOKEN", "walrus-path-1"},
                               {"CAM_PASS", "walrus-pass-2"},
                               {"STREAM_KEY", "walrus-key-3"},
                               {"RECORDINGS", "walrus-folder-4"},
                               {"PWD", "walrus-folder-6"}});
  expand(
      "${GATE_TOKEN} ${CAM_PASS} ${STREAM_KEY:-x} ${CAM_PASSWORD:-walrus-default-5} ${RECORDINGS} "
      "${PWD}");
  EXPECT_EQ(redact("walrus-path-1 walrus-pass-2 walrus-key-3 walrus-default-5"), "*** *** *** ***");
  EXPECT_EQ(redact("walrus-folder-4 walrus-folder-6"), "walrus-folder-4 walrus-folder-6");
}

TEST_F(VariablesTest, ExpandVariablesHasNoFeed) {
  std::string problem;
  EXPECT_EQ(expand_variables("${feed}", options_, problem), std::nullopt);
  EXPECT_EQ(problem, "${feed} has a value only inside feeds");
  EXPECT_EQ(expand_variables("${NAME}", options_, problem), "value");
  EXPECT_EQ(problem, "");
}

TEST_F(VariablesTest, ProcessEnvironmentIsTheDefault) {
  ASSERT_EQ(::setenv("FRAMELANE_TEST_VARIABLE", "from the process", 1), 0);
  std::string problem;
  EXPECT_EQ(expand_variables("${FRAMELANE_TEST_VARIABLE}", LoadOptions{}, problem),
            "from the process");
}

}  // namespace
}  // namespace framelane
