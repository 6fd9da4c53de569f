// Not built for ThreadSanitizer: what it tests has one thread.
#include "daemon/format_watch.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace framelane {
namespace {

using namespace std::chrono_literals;

class FormatWatchTest : public ::testing::Test {
 protected:
  void look(const std::string& format) { watch_.look(format, now_); }
  void pass(std::chrono::milliseconds time) {
    now_.steady += time;
    now_.wall += time;
  }
  std::vector<Incident> all() const { return incidents_.since({}); }

  Moment now_{std::chrono::steady_clock::time_point(1h),
              std::chrono::system_clock::time_point(500'000h)};
  Incidents incidents_;
  FormatWatch watch_{incidents_, {.kind = IncidentKind::kFormatChanged, .feed = "gate"}};
};

TEST_F(FormatWatchTest, TheFirstFormatIsNoChange) {
  look("");
  look("h264 64x48");
  look("h264 64x48");
  EXPECT_TRUE(all().empty());
}

TEST_F(FormatWatchTest, OneChangeIsToldAtOnceAndIsOver) {
  look("h264 64x48");
  pass(5s);
  look("hevc 64x48");
  ASSERT_EQ(all().size(), 1u);
  EXPECT_EQ(all()[0].text, "the source sends hevc 64x48, and no longer h264 64x48");
  EXPECT_EQ(all()[0].begin, now_.wall);
  EXPECT_EQ(all()[0].end, now_.wall);
}

TEST_F(FormatWatchTest, AFormatThatAlternatesIsOneIncidentWithACount) {
  look("small");
  const auto begin = now_.wall + 200ms;
  for (int i = 0; i < 100; ++i) {
    pass(200ms);
    look(i % 2 == 0 ? "large" : "small");
  }
  const auto end = now_.wall;
  for (int i = 0; i < 50; ++i) {
    pass(200ms);
    look("small");
  }
  ASSERT_EQ(all().size(), 1u);
  EXPECT_EQ(all()[0].text,
            "the source's format changed 100 times in 20 s: it sends small, and first sent small");
  EXPECT_EQ(all()[0].begin, begin);
  EXPECT_EQ(all()[0].end, end);
  EXPECT_EQ(all()[0].lasted, 19800ms);
  pass(FormatWatch::kTogether);
  look("large");
  EXPECT_EQ(all().size(), 2u);
}

// What is told is also written to a disk.
TEST_F(FormatWatchTest, ChangesAreToldNowAndThen) {
  std::uint64_t change = 0;
  std::size_t told = 0;
  look("small");
  for (int i = 0; i < 100; ++i) {
    pass(200ms);
    look(i % 2 == 0 ? "large" : "small");
    told += incidents_.changed_since(change).size();
  }
  EXPECT_EQ(told, 4u);
  watch_.end();
  EXPECT_EQ(incidents_.changed_since(change).size(), 1u);
}

}  // namespace
}  // namespace framelane
