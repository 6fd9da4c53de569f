// Not built for ThreadSanitizer: what it tests has one thread.
#include "daemon/query.hpp"

#include <gtest/gtest.h>

#include <string>

#include "pipeline/base/utc_time.hpp"

namespace framelane {
namespace {

/// The time that `since` stands for; "none" if there is none; else what is wrong.
std::string since(const std::map<std::string, std::string>& query) {
  HttpRequest request;
  request.query = query;
  try {
    const auto time = time_in(request, "since");
    return time ? utc_time(*time) : "none";
  } catch (const RequestError& error) {
    return std::to_string(error.status) + " " + error.code + " " + error.key;
  }
}

TEST(QueryTest, ATimeIsATextOrANumberOfSeconds) {
  EXPECT_EQ(since({}), "none");
  EXPECT_EQ(since({{"since", "2026-01-02T03:04:05Z"}}), "2026-01-02T03:04:05.000Z");
  EXPECT_EQ(since({{"since", "1767323045"}}), "2026-01-02T03:04:05.000Z");
  EXPECT_EQ(since({{"since", "1767323045.25"}}), "2026-01-02T03:04:05.250Z");
  EXPECT_EQ(since({{"since", "0"}}), "1970-01-01T00:00:00.000Z");
  // "+01:00" without the escape.
  EXPECT_EQ(since({{"since", "2026-01-02T04:04:05 01:00"}}), "2026-01-02T03:04:05.000Z");
}

TEST(QueryTest, AWrongTimeIsNamed) {
  for (const char* text : {"", "yesterday", "-1", "1e3", "nan", "inf", "99999999999", "12 "}) {
    EXPECT_EQ(since({{"since", text}}), "400 wrong_parameter since") << text;
  }
}

}  // namespace
}  // namespace framelane
