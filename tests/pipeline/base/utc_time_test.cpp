// Not built for ThreadSanitizer: what it tests has one thread.
#include "pipeline/base/utc_time.hpp"

#include <gtest/gtest.h>

namespace framelane {
namespace {

using std::chrono::system_clock;

TEST(UtcTimeTest, WhatIsWrittenIsReadAgain) {
  for (const char* text :
       {"1970-01-01T00:00:00.000Z", "2026-01-02T03:04:05.678Z", "2028-02-29T23:59:59.999Z"}) {
    const auto time = parse_utc_time(text);
    ASSERT_TRUE(time) << text;
    EXPECT_EQ(utc_time(*time), text);
  }
}

TEST(UtcTimeTest, OtherFormsOfTheStandardAreRead) {
  const auto read = [](const char* text) {
    const auto time = parse_utc_time(text);
    return time ? utc_time(*time) : "wrong";
  };
  EXPECT_EQ(read("2026-01-02T03:04:05Z"), "2026-01-02T03:04:05.000Z");
  EXPECT_EQ(read("2026-01-02t03:04:05.1z"), "2026-01-02T03:04:05.100Z");
  EXPECT_EQ(read("2026-01-02T03:04:05.123456789Z"), "2026-01-02T03:04:05.123Z");
  EXPECT_EQ(read("2026-01-02T03:04:05+05:30"), "2026-01-01T21:34:05.000Z");
  EXPECT_EQ(read("2026-01-02T03:04:05-01:00"), "2026-01-02T04:04:05.000Z");
  EXPECT_EQ(read("2016-12-31T23:59:60Z"), "2017-01-01T00:00:00.000Z");
}

TEST(UtcTimeTest, WhatIsNoTimeIsRefused) {
  for (const char* text :
       {"", "2026", "2026-01-02", "2026-01-02T03:04:05", "2026-01-02T03:04Z",
        "2026-13-02T03:04:05Z", "2026-02-29T03:04:05Z", "2026-01-02T24:00:00Z",
        "2026-01-02T03:60:05Z", "2026-01-02T03:04:61Z", "2026-01-02T03:04:05.Z",
        "2026-01-02T03:04:05+0100", "2026-01-02T03:04:05Zx", "2026-01-02T03:04:05+24:00",
        "-026-01-02T03:04:05Z", "1969-12-31T23:59:59Z", "2200-01-01T00:00:00Z",
        "2026-01-02 03:04:05Z"}) {
    EXPECT_FALSE(parse_utc_time(text)) << text;
  }
}

}  // namespace
}  // namespace framelane
