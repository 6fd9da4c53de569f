#include "config/scalars.hpp"

#include <gtest/gtest.h>

namespace framelane {
namespace {

using namespace std::chrono_literals;

TEST(ScalarsTest, DurationsHaveAUnit) {
  EXPECT_EQ(parse_duration("500ms"), 500ms);
  EXPECT_EQ(parse_duration("10s"), 10s);
  EXPECT_EQ(parse_duration("5m"), 5min);
  EXPECT_EQ(parse_duration("1h"), 1h);
  EXPECT_EQ(parse_duration("7d"), 24h * 7);
  EXPECT_EQ(parse_duration("0s"), 0s);
}

TEST(ScalarsTest, WhatIsNoDurationIsRefused) {
  for (const char* text : {"", "10", "s", "10 s", "-1s", "+1s", "1.5s", "010s", "1h30m", "10S",
                           "1us", "106751991168d", "99999999999999999999s"}) {
    EXPECT_EQ(parse_duration(text), std::nullopt) << text;
  }
}

TEST(ScalarsTest, BitratesAndSizesAreDecimal) {
  EXPECT_EQ(parse_bitrate("2M"), 2'000'000);
  EXPECT_EQ(parse_bitrate("2.5M"), 2'500'000);
  EXPECT_EQ(parse_bitrate("800k"), 800'000);
  EXPECT_EQ(parse_bitrate("800K"), 800'000);
  EXPECT_EQ(parse_bitrate("64000"), 64'000);
  EXPECT_EQ(parse_size("80G"), 80'000'000'000);
  EXPECT_EQ(parse_size("1T"), 1'000'000'000'000);
}

TEST(ScalarsTest, WhatIsNoSizeIsRefused) {
  for (const char* text : {"", "M", "2m", "2MB", "2Mi", "0x10", "010", "1.M", ".5M", "1.2345", "-1",
                           "1e6", "2 M", "9223372036854775807k", "9223372.036854775808T"}) {
    EXPECT_EQ(parse_size(text), std::nullopt) << text;
  }
}

TEST(ScalarsTest, FrameRatesAreExactRatios) {
  EXPECT_EQ(parse_frame_rate("30"), (Rational{30, 1}));
  EXPECT_EQ(parse_frame_rate("12.5"), (Rational{25, 2}));
  EXPECT_EQ(parse_frame_rate("30000/1001"), (Rational{30000, 1001}));
}

TEST(ScalarsTest, AbbreviatedNtscRatesMeanTheRealOnes) {
  EXPECT_EQ(parse_frame_rate("23.976"), (Rational{24000, 1001}));
  EXPECT_EQ(parse_frame_rate("29.97"), (Rational{30000, 1001}));
  EXPECT_EQ(parse_frame_rate("59.94"), (Rational{60000, 1001}));
}

TEST(ScalarsTest, WhatIsNoFrameRateIsRefused) {
  for (const char* text : {"", "0", "0/1", "30/0", "30/", "/1", "-30", "30:1", "fast", "030",
                           "2147483648", "1/2147483648", "30000/1001/2"}) {
    EXPECT_EQ(parse_frame_rate(text), std::nullopt) << text;
  }
}

bool is_listen_address(const char* text) {
  Value value;
  return kListenAddress.parse(text, value);
}

TEST(ScalarsTest, ListenAddressesAreHostPortOrSocket) {
  for (const char* text :
       {"", "127.0.0.1:9853", "localhost:0", "[::1]:9853", "[::]:80", "unix:/run/x.sock"}) {
    EXPECT_TRUE(is_listen_address(text)) << text;
  }
  for (const char* text : {"9853", ":9853", "localhost", "localhost:", "localhost:65536", "::1:80",
                           "[]:80", "[::1]", "unix:", "http://x:80", "a b:80"}) {
    EXPECT_FALSE(is_listen_address(text)) << text;
  }
}

TEST(ScalarsTest, IdentifiersAreShortAndLowerCase) {
  EXPECT_TRUE(is_identifier("gate-1_b"));
  EXPECT_TRUE(is_identifier("0"));
  EXPECT_TRUE(is_identifier(std::string(63, 'a')));
  for (const std::string text : {"", "Gate", "-gate", "_gate", "ga te", "ga.te", "g\xc3\xa4te"}) {
    EXPECT_FALSE(is_identifier(text)) << text;
  }
  EXPECT_FALSE(is_identifier(std::string(64, 'a')));
}

}  // namespace
}  // namespace framelane
