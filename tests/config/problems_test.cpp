#include "config/problems.hpp"

#include <gmock/gmock.h>

#include "tests/config/wrong_config.hpp"

namespace framelane {

// The cases are in syntax_problems_test.cpp, value_problems_test.cpp, feed_problems_test.cpp and
// name_problems_test.cpp.
TEST_P(WrongConfigTest, IsReportedWithItsPlace) {
  EXPECT_THAT(test::problems_of(GetParam().text), ::testing::ElementsAreArray(GetParam().problems));
}

namespace {

TEST(ProblemsTest, AllComeAtOnceInFileOrder) {
  EXPECT_THAT(
      test::problems_of("feeds:\n  b: {rings: 1, input: {url: x}}\n"
                        "  a: {input: {url: x, url: y}}\ndevice: gpu\nlog: {level: loud}\n"),
      ::testing::ElementsAre(
          "f.yaml:2:7: feeds.b.rings: is not a known key; did you mean \"ring\"?",
          "f.yaml:3:23: feeds.a.input.url: is given twice; the first is in line 3",
          "f.yaml:4:9: device: must be auto, cpu, cuda or cuda:N, not \"gpu\"",
          "f.yaml:5:14: log.level: must be one of trace, debug, info, warn, error, not "
          "\"loud\""));
}

TEST(ProblemsTest, DiscardedOutputsDoNotCollide) {
  EXPECT_THAT(test::problems_of(feed_with(", outputs: {o: {url: 'null:'}, p: {url: 'null:'}}")),
              ::testing::IsEmpty());
}

TEST(ProblemsTest, WithoutTheEnvironmentOpenValuesAreNotJudged) {
  LoadOptions options = test::with_environment({});
  options.require_environment = false;
  EXPECT_THAT(test::problems_of("feeds:\n  a:\n    ring: '${RING}'\n"
                                "    input: {url: '${URL}', format: '${FORMAT}', size: '${SIZE}'}\n"
                                "    outputs: {o: {url: '${A}', segment: 1m}, p: {url: '${B}'}}\n",
                                options),
              ::testing::IsEmpty());
}

TEST(ProblemsTest, UnreadableFileIsAProblem) {
  const LoadResult result = load_config_file("/nonexistent/f.yaml");
  const auto* problems = std::get_if<std::vector<Problem>>(&result);
  ASSERT_NE(problems, nullptr);
  ASSERT_EQ(problems->size(), 1U);
  EXPECT_EQ(to_string(problems->front()),
            "/nonexistent/f.yaml:1:1: cannot be read: No such file or directory; name another file "
            "with -c");
}

TEST(ProblemsTest, DirectoryIsAProblem) {
  const LoadResult result = load_config_file("/");
  const auto* problems = std::get_if<std::vector<Problem>>(&result);
  ASSERT_NE(problems, nullptr);
  EXPECT_THAT(problems->front().message, ::testing::HasSubstr("Is a directory"));
}

}  // namespace
}  // namespace framelane
