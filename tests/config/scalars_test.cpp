#include "config/scalars.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

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

std::optional<std::int64_t> parsed(const ScalarType& type, std::string_view text) {
  Value value;
  return type.parse(text, value) ? std::optional(value.number) : std::nullopt;
}

TEST(ScalarsTest, BitratesAndSizesAreDecimal) {
  EXPECT_EQ(parsed(kBitrate, "2M"), 2'000'000);
  EXPECT_EQ(parsed(kBitrate, "2.5M"), 2'500'000);
  EXPECT_EQ(parsed(kBitrate, "800k"), 800'000);
  EXPECT_EQ(parsed(kBitrate, "800K"), 800'000);
  EXPECT_EQ(parsed(kBitrate, "64000"), 64'000);
  EXPECT_EQ(parsed(kSize, "80G"), 80'000'000'000);
  EXPECT_EQ(parsed(kSize, "1T"), 1'000'000'000'000);
}

TEST(ScalarsTest, PercentagesArePartsOfAWhole) {
  EXPECT_DOUBLE_EQ(parse_percent("5%").value(), 0.05);
  EXPECT_DOUBLE_EQ(parse_percent("0.5%").value(), 0.005);
  EXPECT_DOUBLE_EQ(parse_percent("99.9%").value(), 0.999);
  for (const char* text : {"", "%", "5", "0%", "0.0%", "100%", "-1%", "05%", "5 %", "5%%", "1.%"}) {
    EXPECT_EQ(parse_percent(text), std::nullopt) << text;
  }
}

TEST(ScalarsTest, WhatIsNoSizeIsRefused) {
  for (const char* text : {"", "M", "2m", "2MB", "2Mi", "0x10", "010", "1.M", ".5M", "1.2345", "-1",
                           "1e6", "2 M", "9223372036854775807k", "9223372.036854775808T"}) {
    EXPECT_EQ(parsed(kSize, text), std::nullopt) << text;
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

bool is_listen_address(const std::string& text) {
  Value value;
  return kListenAddress.parse(text, value);
}

TEST(ScalarsTest, ListenAddressesAreHostPortOrSocket) {
  for (const char* text :
       {"", "127.0.0.1:9853", "localhost:0", "[::1]:9853", "[::]:80", "unix:/run/x.sock"}) {
    EXPECT_TRUE(is_listen_address(text)) << text;
  }
  EXPECT_TRUE(is_listen_address("unix:" + std::string(107, 'a')));
  EXPECT_FALSE(is_listen_address("unix:" + std::string(108, 'a')));
  for (const char* text :
       {"9853", ":9853", "localhost", "localhost:", "localhost:65536", "::1:80", "[]:80", "[::1]",
        "unix:", "http://x:80", "a b:80", "a\n:80", "[\n]:80", "unix:/tmp/a\nb"}) {
    EXPECT_FALSE(is_listen_address(text)) << text;
  }
  EXPECT_FALSE(is_listen_address(std::string("unix:/tmp/a\0b", 13)));
}

/// Whether the schema's pattern accepts the text, and whether the reader does.
std::pair<bool, bool> verdicts(const ScalarType& type, const std::string& text) {
  Value ignored;
  return {std::regex_search(text, std::regex(std::string(type.pattern))),
          type.parse(text, ignored)};
}

TEST(ScalarsTest, TheSchemaTakesTheNumbersThatTheReaderTakes) {
  // Around every limit, with and without leading zeros.
  std::vector<std::string> numbers;
  for (const int number :
       {0,     1,     9,     10,    99,    100,   119,   120,   127,   128,   129,   999,   1000,
        9999,  10000, 15999, 16000, 16383, 16384, 16385, 16390, 16400, 17000, 20000, 59999, 60000,
        65499, 65500, 65529, 65530, 65535, 65536, 65540, 65600, 66000, 70000, 99999, 100000}) {
    const std::string text = std::to_string(number);
    numbers.insert(numbers.end(), {text, "0" + text, "00" + text});
  }
  for (const std::string& number : numbers) {
    for (const auto& [type, text] :
         {std::pair{&kDeviceName, "cuda:" + number}, std::pair{&kListenAddress, "h:" + number},
          std::pair{&kImageSize, number + "x2"}, std::pair{&kImageSize, "2x" + number},
          std::pair{&kSizeOrShape, number + "x-2"}, std::pair{&kSizeOrShape, "-2x" + number},
          std::pair{&kSizeOrShape, number + '%'}, std::pair{&kImagePart, number + "x2+0+" + number},
          std::pair{&kImagePart, "2x2+" + number + "+7"}}) {
      const auto [schema, reader] = verdicts(*type, text);
      EXPECT_EQ(schema, reader) << text;
    }
  }
  for (const std::string number : {"2.123456M", "2.1234567M", "2.M", ".5M", "02M"}) {
    const auto [schema, reader] = verdicts(kBitrate, number);
    EXPECT_EQ(schema, reader) << number;
  }
}

TEST(ScalarsTest, NothingIsNoFrameRateAndNoSpaceInTheSchemaEither) {
  for (const std::string text :
       {"0", "0.0", "0.000000", "0.000001", "0.5", "10", "0/1", "1/2", "30.", "00.5"}) {
    const auto [schema, reader] = verdicts(kFrameRate, text);
    EXPECT_EQ(schema, reader) << text;
  }
  for (const std::string text : {"0", "0k", "0.0G", "0%", "0.0%", "0.000001%", "0.001k", "1", "99%",
                                 "99.999999%", "100%", "5G", "5 G", "0.5T"}) {
    const auto [schema, reader] = verdicts(kSizeOrPercent, text);
    EXPECT_EQ(schema, reader) << text;
  }
}

TEST(ScalarsTest, APartMayBeAllOfThePicture) {
  Value value;
  ASSERT_TRUE(kPercent.parse("100%", value));
  EXPECT_EQ(value.part, 1);
  ASSERT_TRUE(kPercent.parse("0.000001%", value));
  for (const std::string text :
       {"100%", "100.0%", "100.0000000%", "100.000001%", "101%", "1000%", "99.999999%", "0%",
        "0.0%", "0.000001%", "0.0000001%", "10%", "010%", "-1%", "5", "%", "5%%"}) {
    const auto [schema, reader] = verdicts(kPercent, text);
    EXPECT_EQ(schema, reader) << text;
  }
}

TEST(ScalarsTest, SizesPartsAndColoursAreReadAsTheSchemaSays) {
  for (const auto& [type, text] :
       {std::pair{&kSizeOrShape, "1280x720"}, std::pair{&kSizeOrShape, "-2x-2"},
        std::pair{&kSizeOrShape, "-2"}, std::pair{&kSizeOrShape, "-3x4"},
        std::pair{&kSizeOrShape, "50.5%"}, std::pair{&kSizeOrShape, "%"},
        std::pair{&kImagePart, "4x4+1"}, std::pair{&kImagePart, "4x4-1+1"},
        std::pair{&kImagePart, "4x4+1+1+1"}, std::pair{&kImagePart, "-2x4+1+1"},
        std::pair{&kColorCode, "#00fFa9"}, std::pair{&kColorCode, "#00ffa"},
        std::pair{&kColorCode, "#00ffg9"}, std::pair{&kColorCode, "00ffa9"},
        std::pair{&kQuarterTurns, "270"}, std::pair{&kQuarterTurns, "090"},
        std::pair{&kQuarterTurns, "90.0"}, std::pair{&kQuarterTurns, "360"}}) {
    const auto [schema, reader] = verdicts(*type, text);
    EXPECT_EQ(schema, reader) << text;
  }
  Value value;
  ASSERT_TRUE(kImagePart.parse("640x480+12+34", value));
  EXPECT_EQ(std::tuple(value.width, value.height, value.x, value.y), std::tuple(640, 480, 12, 34));
  ASSERT_TRUE(kColorCode.parse("#0aB1c2", value));
  EXPECT_EQ(value.number, 0x0AB1C2);
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
