#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <random>
#include <thread>

#include "tests/config/source_root.hpp"
#include "tests/config/support.hpp"

namespace framelane {
namespace {

using test::problems_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string example() {
  std::ifstream file(test::source_root() / "config" / "framelane.example.yaml");
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Loads any text. It must be accepted, or have problems with places inside the text.
void expect_survives(const std::string& text) {
  LoadOptions options = test::with_environment({});
  options.require_environment = false;
  const LoadResult result = load_config_text(text, "f.yaml", options);
  const auto* problems = std::get_if<std::vector<Problem>>(&result);
  if (problems == nullptr) return;
  ASSERT_FALSE(problems->empty());
  const auto lines = 2 + std::count(text.begin(), text.end(), '\n');
  for (const Problem& problem : *problems) {
    ASSERT_GE(problem.line, 1) << text;
    ASSERT_LE(problem.line, lines) << text;
    ASSERT_GE(problem.column, 1) << text;
    ASSERT_FALSE(problem.message.empty());
  }
}

TEST(ConfigRobustnessTest, SurvivesEveryTruncation) {
  const std::string text = example();
  ASSERT_FALSE(text.empty());
  for (std::size_t length = 0; length < text.size(); length += 7) {
    expect_survives(text.substr(0, length));
  }
}

TEST(ConfigRobustnessTest, SurvivesRandomMutations) {
  const std::string text = example();
  ASSERT_FALSE(text.empty());
  std::mt19937 random(20240601);  // NOLINT(cert-msc51-cpp): the same numbers every time
  constexpr std::string_view kSignificant = "{}[]:,-&*!|>'\"%@`#?$~<\t\n\r \x04\x80\xff";
  for (int round = 0; round < 500; ++round) {
    std::string mutated = text;
    const unsigned changes = 1 + random() % 4;
    for (unsigned i = 0; i < changes; ++i) {
      const std::size_t at = random() % mutated.size();
      switch (random() % 4) {
        case 0:
          mutated[at] = static_cast<char>(random() % 256);
          break;
        case 1:
          mutated[at] = kSignificant[random() % kSignificant.size()];
          break;
        case 2:
          mutated.erase(at, 1 + random() % 20);
          break;
        default:
          mutated.insert(at, mutated.substr(random() % mutated.size(), random() % 40));
      }
      if (mutated.empty()) mutated = "x";
    }
    ASSERT_NO_FATAL_FAILURE(expect_survives(mutated));
  }
}

TEST(ConfigRobustnessTest, DeepNestingIsRefused) {
  const auto problems = problems_of(std::string(100'000, '['));
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_THAT(problems[0], HasSubstr("is nested more than 64 levels deep"));
}

TEST(ConfigRobustnessTest, AliasesCannotMultiplyWithoutEnd) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 20; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int k = 0; k < 10; ++k) text += before + " , ";
    text += "]\n";
  }
  const auto problems = problems_of(text);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_THAT(problems[0], HasSubstr("larger than 200000 values"));
}

TEST(ConfigRobustnessTest, LongKeysAreRefused) {
  const auto problems =
      problems_of("feeds: {a: {input: {url: x}}, " + std::string(257, 'k') + ": {}}\n");
  EXPECT_THAT(problems,
              ElementsAre("f.yaml:1:31: feeds.?: a key must not be longer than 256 bytes"));
}

TEST(ConfigRobustnessTest, AVeryLongKeyIsNotRepeatedInThePathsBelowIt) {
  std::string text = "? " + std::string(1 << 20, 'k') + "\n: [";
  for (int i = 0; i < 8000; ++i) text += "{}, ";
  expect_survives(text + "]\n");
  LoadOptions options = test::with_environment({});
  const LoadResult result = load_config_text(text + "]\n", "f.yaml", options);
  for (const Problem& problem : std::get<std::vector<Problem>>(result)) {
    EXPECT_LT(problem.key.size(), 300U);
  }
}

TEST(ConfigRobustnessTest, LongPathsCountAsSeveralValues) {
  std::string text;
  for (int i = 0; i < 60; ++i) text += "{" + std::string(256, 'k') + ": ";
  text += "[";
  for (int i = 0; i < 10'000; ++i) text += "1,";
  text += "]" + std::string(60, '}');
  const auto problems = problems_of(text);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_THAT(problems[0], HasSubstr("larger than 200000 values"));
}

TEST(ConfigRobustnessTest, AliasesOfALongTextCountAsSeveralValues) {
  std::string text = "[&a " + std::string(100'000, 'x');
  for (int i = 0; i < 2'000; ++i) text += ", *a ";
  const auto problems = problems_of(text + "]");
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_THAT(problems[0], HasSubstr("larger than 200000 values"));
}

TEST(ConfigRobustnessTest, CopiesForNestedAnchorsCount) {
  std::string text;
  for (int i = 0; i < 60; ++i) text += "&a" + std::to_string(i) + " [";
  for (int i = 0; i < 10'000; ++i) text += "1,";
  const auto problems = problems_of(text + std::string(60, ']'));
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_THAT(problems[0], HasSubstr("larger than 200000 values"));
}

TEST(ConfigRobustnessTest, AliasInsideItsOwnValueIsRefused) {
  EXPECT_THAT(problems_of("feeds: &f {a: *f }\n"),
              ElementsAre("f.yaml:1:15: feeds.a: this alias is inside the value it stands for; "
                          "write the value out"));
}

TEST(ConfigRobustnessTest, TooLargeFileIsRefused) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("framelane-large-" + std::to_string(::getpid()) + ".yaml");
  { std::ofstream(path) << std::string((16U << 20U) + 1, '#'); }
  const LoadResult result = load_config_file(path.string());
  std::filesystem::remove(path);
  const auto* problems = std::get_if<std::vector<Problem>>(&result);
  ASSERT_NE(problems, nullptr);
  EXPECT_THAT(problems->at(0).message, HasSubstr("File too large"));
}

/// A file that is removed after the test.
class ConfigFileTest : public ::testing::Test {
 protected:
  ConfigFileTest() { std::filesystem::remove(path_); }
  ~ConfigFileTest() override { std::filesystem::remove(path_); }

  const std::filesystem::path path_ = std::filesystem::temp_directory_path() /
                                      ("framelane-file-" + std::to_string(::getpid()) + ".yaml");
};

TEST_F(ConfigFileTest, AFifoIsRefusedAndDoesNotBlock) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  const LoadResult result = load_config_file(path_.string());
  const auto* problems = std::get_if<std::vector<Problem>>(&result);
  ASSERT_NE(problems, nullptr);
  EXPECT_EQ(problems->at(0).message,
            "cannot be read: it is not a regular file; name another file with -c");
}

TEST_F(ConfigFileTest, APipeThatIsOpenAlreadyIsReadToItsEnd) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  std::jthread writer([fd = ends[1]] {
    // More than fits into a pipe, so that the reader has to wait for the rest.
    const std::string text = "feeds: {a: {input: {url: x}}}\n" + std::string(1 << 20, '#');
    for (std::size_t done = 0; done < text.size();) {
      const ssize_t written = ::write(fd, text.data() + done, text.size() - done);
      if (written <= 0) break;
      done += static_cast<std::size_t>(written);
    }
    ::close(fd);
  });
  const LoadResult result = load_config_file("/dev/fd/" + std::to_string(ends[0]));
  writer.join();
  ::close(ends[0]);
  const auto* config = std::get_if<Config>(&result);
  ASSERT_NE(config, nullptr);
  EXPECT_EQ(config->feeds.size(), 1U);
}

}  // namespace
}  // namespace framelane
