#pragma once

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "tests/config/support.hpp"

namespace framelane {

/// A configuration with mistakes, and the problems that have to be reported, as printed.
struct Wrong {
  std::string name;  ///< of the test
  std::string text;
  std::vector<std::string> problems;
};
inline void PrintTo(const Wrong& wrong, std::ostream* out) { *out << wrong.text; }
inline std::string name_of(const ::testing::TestParamInfo<Wrong>& info) { return info.param.name; }

/// Its one test is in problems_test.cpp; files with cases instantiate it.
class WrongConfigTest : public ::testing::TestWithParam<Wrong> {};

/// A correct feed with something added in its braces. The feed begins in line 1, column 9.
inline std::string feed_with(const std::string& rest) {
  return "feeds: {a: {input: {url: x}" + rest + "}}\n";
}
/// An input with something added; the added text begins in column 27.
inline std::string input_with(const std::string& rest) {
  return "feeds: {a: {input: {url: x" + rest + "}}}\n";
}
/// An encode "m" with this codec; the codec begins in column 59.
inline std::string encode_with(const std::string& codec) {
  return feed_with(", encodes: {m: {video: {codec: " + codec + "}}}");
}
/// An output "o" with these keys; they begin in column 44.
inline std::string output_with(const std::string& keys) {
  return feed_with(", outputs: {o: {" + keys + "}}");
}

}  // namespace framelane
