#include "bench/suites/child_process.hpp"

#include <gmock/gmock.h>

namespace framelane::bench {
namespace {

using ::testing::HasSubstr;

std::string output_of_shell(const std::string& script) {
  return output_of_child("/bin/sh", {"-c", script}, "FRAMELANE_BENCH_TEST=a value");
}

TEST(ChildProcessTest, WhatItWritesToDescriptorThreeComesBack) {
  EXPECT_EQ(output_of_shell("echo unseen; printf '%s' \"$FRAMELANE_BENCH_TEST\" >/dev/fd/3"),
            "a value");
}

TEST(ChildProcessTest, AVariableThatWasThereIsReplaced) {
  ASSERT_EQ(setenv("FRAMELANE_BENCH_TEST", "another", 1), 0);
  EXPECT_EQ(output_of_shell("env | grep -c ^FRAMELANE_BENCH_TEST= >/dev/fd/3"), "1\n");
  EXPECT_EQ(output_of_shell("printf '%s' \"$FRAMELANE_BENCH_TEST\" >/dev/fd/3"), "a value");
  unsetenv("FRAMELANE_BENCH_TEST");
}

TEST(ChildProcessTest, MuchOutputComesWhole) {
  EXPECT_EQ(output_of_shell("head -c 300000 /dev/zero >/dev/fd/3").size(), 300'000u);
}

TEST(ChildProcessTest, OneThatSaysNothingIsAnError) {
  const auto message_of = [](const char* program) -> std::string {
    try {
      output_of_child(program, {}, "A=b");
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(message_of("/bin/true"), HasSubstr("gave nothing"));
  EXPECT_THAT(message_of("/nonexistent"),
              HasSubstr("/nonexistent cannot be started: No such file"));
}

}  // namespace
}  // namespace framelane::bench
