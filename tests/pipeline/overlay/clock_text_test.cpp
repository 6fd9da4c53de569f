#include "pipeline/overlay/clock_text.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <ctime>

namespace framelane {
namespace {

using namespace std::chrono_literals;
using Time = std::chrono::system_clock::time_point;

/// 2026-01-02 03:04:05 UTC.
const Time kMoment{1'767'323'045s};

class ClockTextTest : public ::testing::Test {
 protected:
  void SetUp() override { use_zone("UTC"); }
  void TearDown() override {
    unsetenv("TZ");
    tzset();
  }
  static void use_zone(const char* zone) {
    setenv("TZ", zone, 1);
    tzset();
  }
};

TEST_F(ClockTextTest, FieldsTellTheTimeOfThePicture) {
  ClockText text("gate  %F %T");
  EXPECT_EQ(text.at(kMoment), "gate  2026-01-02 03:04:05");
  EXPECT_EQ(text.at(kMoment + 999ms), "gate  2026-01-02 03:04:05");
  EXPECT_EQ(text.at(kMoment + 1s), "gate  2026-01-02 03:04:06");
  EXPECT_EQ(text.at(kMoment), "gate  2026-01-02 03:04:05");
}

TEST_F(ClockTextTest, TimeIsLocal) {
  use_zone("XST-5:30");
  EXPECT_EQ(ClockText("%H:%M %Z").at(kMoment), "08:34 XST");
}

TEST_F(ClockTextTest, TextWithoutFieldsStays) {
  EXPECT_EQ(ClockText("100%% ünïcode\nsecond line").at(kMoment), "100% ünïcode\nsecond line");
  EXPECT_EQ(ClockText("plain").at(kMoment), "plain");
}

TEST_F(ClockTextTest, ShortFieldsAreWhole) {
  EXPECT_EQ(ClockText("%P").at(kMoment), "am");
  EXPECT_EQ(ClockText("%%").at(kMoment), "%");
}

TEST_F(ClockTextTest, EveryFieldIsKnownToStrftime) {
  const std::string fields = "aAbBcCdDeFgGhHIjklmMpPrRsSTuUVwWxXyYzZ";
  for (const char field : fields) {
    const std::string pattern{'%', field};
    EXPECT_FALSE(ClockText::why_not(pattern)) << pattern;
    EXPECT_NE(ClockText(pattern).at(kMoment), pattern);
  }
}

TEST_F(ClockTextTest, UnknownFieldsAreNamed) {
  EXPECT_EQ(
      ClockText::why_not("%F %Q"),
      "has %Q, which is none of the fields that a text may have; write %% for a percent sign, "
      "and see docs/configuration.md, Overlays, for the fields");
  EXPECT_EQ(ClockText::why_not("%Ey").value_or("").substr(0, 6), "has %E");
  EXPECT_EQ(ClockText::why_not("100%"), "ends in a single %; write %% for a percent sign");
  EXPECT_EQ(ClockText::why_not("%%%").value_or("").substr(0, 6), "ends i");
  EXPECT_FALSE(ClockText::why_not("100%%"));
}

}  // namespace
}  // namespace framelane
