// Not built for ThreadSanitizer: one thread uses the class.
#include "pipeline/encode/rate_limit.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/encode/keyframe_times.hpp"

namespace framelane {
namespace {

using namespace std::chrono_literals;

constexpr AVRational kMillisecond{1, 1000};

std::vector<std::int64_t> taken(std::optional<Rational> rate, AVRational source_rate,
                                const std::vector<std::int64_t>& times_ms) {
  RateLimit limit(rate, std::nullopt);
  std::vector<std::int64_t> result;
  for (const std::int64_t time : times_ms) {
    if (!limit.takes(time, kMillisecond, source_rate)) continue;
    limit.taken();
    result.push_back(time);
  }
  return result;
}

std::vector<std::int64_t> every(int ms, int end) {
  std::vector<std::int64_t> times;
  for (int time = 0; time < end; time += ms) times.push_back(time);
  return times;
}

TEST(RateLimitTest, TheFrameNearestToEachMultipleIsTaken) {
  EXPECT_EQ(taken(Rational{10}, {25, 1}, every(40, 500)),
            (std::vector<std::int64_t>{0, 80, 200, 280, 400, 480}));
  EXPECT_EQ(taken(Rational{5}, {25, 1}, every(40, 500)), (std::vector<std::int64_t>{0, 200, 400}));
  EXPECT_EQ(taken(Rational{1, 2}, {25, 1}, every(40, 4500)),
            (std::vector<std::int64_t>{0, 2000, 4000}));
}

TEST(RateLimitTest, FramesThatComeALittleEarlyOrLateAreNotLost) {
  const std::vector<std::int64_t> times{0, 41, 79, 121, 159, 200, 239, 281, 320};
  EXPECT_EQ(taken(Rational{25}, {25, 1}, times), times);
  EXPECT_EQ(taken(Rational{30'000, 1001}, {25, 1}, times), times);
}

TEST(RateLimitTest, WithoutALimitOrWithAHigherOneAllAreTaken) {
  EXPECT_EQ(taken(std::nullopt, {25, 1}, every(40, 500)), every(40, 500));
  EXPECT_EQ(taken(Rational{60}, {25, 1}, every(40, 500)), every(40, 500));
}

TEST(RateLimitTest, OfASourceWithoutARateTheFirstFrameAfterEachMultipleIsTaken) {
  EXPECT_EQ(taken(Rational{10}, {0, 1}, {0, 30, 99, 101, 150, 310, 399, 400}),
            (std::vector<std::int64_t>{0, 101, 310, 400}));
}

TEST(RateLimitTest, AfterAGapFramesAreTakenAtOnce) {
  EXPECT_EQ(taken(Rational{1}, {25, 1}, {0, 40, 9'700, 9'740, 10'000, 10'040}),
            (std::vector<std::int64_t>{0, 9'700, 10'000}));
}

TEST(RateLimitTest, TheNextFrameHasThePlaceOfOneThatIsLost) {
  RateLimit limit(Rational{5}, 1s);
  const auto takes = [&](std::int64_t time) { return limit.takes(time, kMillisecond, {25, 1}); };
  EXPECT_TRUE(takes(0));
  limit.taken();
  EXPECT_FALSE(takes(40));
  EXPECT_TRUE(takes(200));  // lost
  EXPECT_TRUE(takes(240));
  limit.taken();
  EXPECT_FALSE(takes(280));
  EXPECT_TRUE(takes(1000));  // lost: the next one is a keyframe in every encode
  EXPECT_TRUE(takes(1040));
  limit.taken();
  EXPECT_FALSE(takes(1080));
  EXPECT_FALSE(takes(1200));
  EXPECT_TRUE(takes(1240));  // counted from the keyframe
}

TEST(RateLimitTest, OfASourceThatIsSlowerThanItSaysNoFrameGivesWay) {
  RateLimit limit(Rational{10}, 2s);
  for (std::int64_t time = 170; time < 10'000; time += 200) {  // 30 ms before the multiples of gop
    EXPECT_TRUE(limit.takes(time, kMillisecond, {25, 1})) << time;
    limit.taken();
  }
}

struct TestSource {
  const char* name;
  AVRational rate;
  std::int64_t jitter_us;  // frames come this much early or late, or less
};

/// The times of more than a minute of frames.
std::vector<std::int64_t> frames_of(const TestSource& source) {
  std::vector<std::int64_t> times_us;
  for (std::int64_t n = 0; times_us.empty() || times_us.back() < 70'000'000; ++n) {
    const std::int64_t steps = source.jitter_us / 500;
    const std::int64_t early = steps == 0 ? 0 : (n * n * 31 + n * 17) % (2 * steps + 1) - steps;
    const std::int64_t time = n * 1'000'000 * source.rate.den / source.rate.num + early * 500;
    times_us.push_back(std::max<std::int64_t>(time, 0));
  }
  return times_us;
}

/// Those that KeyframeTimes makes keyframes.
std::vector<std::int64_t> keyframes_of(const std::vector<std::int64_t>& times_us,
                                       std::chrono::microseconds gop) {
  KeyframeTimes keyframes(gop);
  std::vector<std::int64_t> result;
  std::ranges::copy_if(times_us, std::back_inserter(result), [&](std::int64_t time) {
    return keyframes.due(time, {1, 1'000'000});
  });
  return result;
}

/// An encode that takes fewer frames than its source has.
struct Limited {
  TestSource source;
  Rational rate;
  std::chrono::microseconds gop;
  std::vector<std::int64_t> all = frames_of(source);

  /// The source's frames that it takes. Between `down` and `up` it has no encoder.
  std::vector<std::int64_t> taken(std::int64_t down = 0, std::int64_t up = 0) const {
    RateLimit limit(rate, gop);
    std::vector<std::int64_t> result;
    for (const std::int64_t time : all) {
      if (time >= down && time < up) continue;
      if (!limit.takes(time, {1, 1'000'000}, source.rate)) continue;
      limit.taken();
      result.push_back(time);
    }
    return result;
  }
  double per_second() const { return static_cast<double>(rate.num) / rate.den; }
  double of_source() const { return av_q2d(source.rate); }
  bool gop_is_short() const { return static_cast<double>(gop.count()) * per_second() < 1e6; }
};

class RateAndGopTest : public ::testing::TestWithParam<TestSource> {
 protected:
  template <typename Test>
  static void with_each_rate_and_gop(const Test& test) {
    for (const Rational rate :
         {Rational{60}, Rational{30'000, 1001}, Rational{25}, Rational{15}, Rational{148, 10},
          Rational{10}, Rational{5}, Rational{1}, Rational{7, 10}, Rational{1, 3}}) {
      for (const std::chrono::milliseconds gop : {500ms, 1000ms, 2000ms, 2500ms, 10'000ms}) {
        SCOPED_TRACE(std::to_string(rate.num) + "/" + std::to_string(rate.den) + ", gop " +
                     std::to_string(gop.count()) + "ms");
        test(Limited{GetParam(), rate, gop});
      }
    }
  }
};

TEST_P(RateAndGopTest, KeyframesAreThoseOfTheEncodeThatTakesAllFrames) {
  with_each_rate_and_gop([](const Limited& encode) {
    const auto every = keyframes_of(encode.all, encode.gop);
    const auto frames = encode.taken();
    const auto keyframes = keyframes_of(frames, encode.gop);
    if (encode.gop_is_short()) {
      EXPECT_EQ(keyframes, frames);
      EXPECT_TRUE(std::ranges::includes(every, keyframes));
    } else {
      EXPECT_EQ(keyframes, every);
    }
  });
}

TEST_P(RateAndGopTest, AnEncodeThatComesBackHasThemFromTheNextMultipleOn) {
  with_each_rate_and_gop([](const Limited& encode) {
    if (encode.gop_is_short()) return;
    constexpr std::int64_t kUp = 27'300'000;
    const std::int64_t next = (kUp / encode.gop.count() + 1) * encode.gop.count();
    auto every = keyframes_of(encode.all, encode.gop);
    auto keyframes = keyframes_of(encode.taken(13'300'000, kUp), encode.gop);
    std::erase_if(every, [&](std::int64_t time) { return time < next; });
    std::erase_if(keyframes, [&](std::int64_t time) { return time < next; });
    EXPECT_EQ(keyframes, every);
  });
}

TEST_P(RateAndGopTest, AsManyFramesAreTakenAsTheRateAllows) {
  with_each_rate_and_gop([](const Limited& encode) {
    const auto frames = encode.taken();
    const double seconds = static_cast<double>(encode.all.back() - encode.all.front()) / 1e6;
    const double rate = std::min(encode.per_second(), encode.of_source());
    EXPECT_LE(static_cast<double>(frames.size()), rate * seconds + 2);
    if (encode.gop_is_short()) {
      EXPECT_GE(static_cast<double>(frames.size()), rate * seconds - 2);
      return;
    }
    const auto keyframes = keyframes_of(encode.all, encode.gop);
    for (std::size_t i = 1; i < keyframes.size(); ++i) {
      const auto in_group = [&](std::int64_t time) {
        return time >= keyframes[i - 1] && time < keyframes[i];
      };
      const double allowed =
          static_cast<double>(keyframes[i] - keyframes[i - 1]) / 1e6 * encode.per_second();
      const double expected =
          std::min(allowed, static_cast<double>(std::ranges::count_if(encode.all, in_group)));
      const auto count = static_cast<double>(std::ranges::count_if(frames, in_group));
      EXPECT_LE(count, std::ceil(expected)) << keyframes[i - 1];
      EXPECT_GE(count, std::floor(expected) - 1) << keyframes[i - 1];
    }
  });
}

TEST_P(RateAndGopTest, FramesAreEvenlyApart) {
  with_each_rate_and_gop([](const Limited& encode) {
    const double apart = 1e6 / encode.of_source();
    const auto jitter = static_cast<double>(encode.source.jitter_us);
    const double step = 1e6 / std::min(encode.per_second(), encode.of_source());
    // When the next keyframe comes can only be guessed if frames come early and late.
    const double least = step / 2 - (jitter > 0 ? apart : 1);
    const double longest =
        encode.gop_is_short() ? step + static_cast<double>(encode.gop.count()) : 2 * step;
    const auto frames = encode.taken();
    for (std::size_t i = 1; i < frames.size(); ++i) {
      const auto distance = static_cast<double>(frames[i] - frames[i - 1]);
      EXPECT_GE(distance, least) << frames[i];
      EXPECT_LE(distance, longest + apart + 2 * jitter + 1) << frames[i];
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Sources, RateAndGopTest,
                         ::testing::Values(TestSource{"Of2997", {30'000, 1001}, 0},
                                           TestSource{"Of25WithJitter", {25, 1}, 3'000},
                                           TestSource{"Of24", {24, 1}, 0},
                                           TestSource{"Of5994", {60'000, 1001}, 0}),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace framelane
