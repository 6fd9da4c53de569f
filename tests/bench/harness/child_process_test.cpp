#include "bench/harness/child_process.hpp"

#include <gmock/gmock.h>
#include <signal.h>

namespace framelane::bench {
namespace {

using ::testing::HasSubstr;

class ChildProcessTest : public ::testing::Test {
 protected:
  ChildProcessTest() { signal(SIGPIPE, SIG_IGN); }
  ~ChildProcessTest() override { signal(SIGPIPE, SIG_DFL); }

  static std::string output_of_shell(const std::string& script) {
    return ChildProcess("/bin/sh", {"-c", script}, {"FRAMELANE_BENCH_TEST=a value", "OTHER=b"})
        .finish();
  }
};

TEST_F(ChildProcessTest, WhatItWritesToDescriptorThreeComesBack) {
  EXPECT_EQ(output_of_shell("echo unseen; printf '%s' \"$FRAMELANE_BENCH_TEST$OTHER\" >/dev/fd/3"),
            "a valueb");
}

TEST_F(ChildProcessTest, AVariableThatWasThereIsReplaced) {
  ASSERT_EQ(setenv("FRAMELANE_BENCH_TEST", "another", 1), 0);
  EXPECT_EQ(output_of_shell("env | grep -c ^FRAMELANE_BENCH_TEST= >/dev/fd/3"), "1\n");
  EXPECT_EQ(output_of_shell("printf '%s' \"$FRAMELANE_BENCH_TEST\" >/dev/fd/3"), "a value");
  unsetenv("FRAMELANE_BENCH_TEST");
}

TEST_F(ChildProcessTest, MuchOutputComesWhole) {
  EXPECT_EQ(output_of_shell("head -c 300000 /dev/zero >/dev/fd/3").size(), 300'000u);
}

TEST_F(ChildProcessTest, ItTakesOneStepAtATime) {
  // Each step reads a byte and counts; at the end of its input it says how many there were.
  ChildProcess child("/bin/sh",
                     {"-c",
                      "n=0; while [ \"$(head -c 1 | wc -c)\" = 1 ]; do n=$((n + 1)); "
                      "printf . >&3; done; printf \"steps: $n\" >&3"},
                     {"A=b"});
  for (int i = 0; i < 3; ++i) child.step();
  EXPECT_EQ(child.finish(), "steps: 3");
}

TEST_F(ChildProcessTest, OneThatEndsEarlyTakesNoMoreSteps) {
  ChildProcess child("/bin/sh", {"-c", "printf result >&3"}, {"A=b"});
  for (int i = 0; i < 3; ++i) child.step();
  EXPECT_EQ(child.finish(), "result");
}

TEST_F(ChildProcessTest, OneThatSaysNothingIsAnError) {
  const auto message_of = [](const char* program) -> std::string {
    try {
      ChildProcess(program, {}, {"A=b"}).finish();
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(message_of("/bin/true"), HasSubstr("/bin/true with A=b gave nothing"));
  EXPECT_THAT(message_of("/nonexistent"),
              HasSubstr("/nonexistent cannot be started: No such file"));
}

}  // namespace
}  // namespace framelane::bench
