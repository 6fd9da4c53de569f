// Not built for ThreadSanitizer: one thread uses it.
#include "pipeline/output/master_playlist.hpp"

#include <gmock/gmock.h>

#include <chrono>

namespace framelane {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

HlsVariant hd_variant() {
  return {.uri = "p720/index.m3u8",
          .codecs = "avc1.64001f,mp4a.40.2",
          .width = 1280,
          .height = 720,
          .frame_rate = {30000, 1001},
          .bandwidth = 2'500'000,
          .average_bandwidth = 2'000'001};
}

TEST(MasterPlaylistTest, SaysOfEveryVariantWhatAPlayerChoosesBy) {
  HlsVariant small{.uri = "p480/index.m3u8",
                   .codecs = "avc1.64001e",
                   .width = 854,
                   .height = 480,
                   .frame_rate = {25, 1},
                   .bandwidth = 900'000,
                   .average_bandwidth = 800'000};
  EXPECT_EQ(master_playlist({hd_variant(), small}),
            "#EXTM3U\n#EXT-X-VERSION:6\n#EXT-X-INDEPENDENT-SEGMENTS\n"
            "#EXT-X-STREAM-INF:BANDWIDTH=2500000,AVERAGE-BANDWIDTH=2000001,"
            "CODECS=\"avc1.64001f,mp4a.40.2\",RESOLUTION=1280x720,FRAME-RATE=29.970\n"
            "p720/index.m3u8\n"
            "#EXT-X-STREAM-INF:BANDWIDTH=900000,AVERAGE-BANDWIDTH=800000,"
            "CODECS=\"avc1.64001e\",RESOLUTION=854x480,FRAME-RATE=25.000\n"
            "p480/index.m3u8\n");
}

TEST(MasterPlaylistTest, LeavesOutWhatIsNotKnown) {
  HlsVariant variant = hd_variant();
  variant.codecs.clear();
  variant.frame_rate = {0, 1};
  EXPECT_THAT(master_playlist({variant}), Not(HasSubstr("CODECS")));
  EXPECT_THAT(master_playlist({variant}), Not(HasSubstr("FRAME-RATE")));
}

TEST(SegmentRatesTest, ThePeakIsOfOneSegmentAndTheAverageOfAll) {
  SegmentRates rates;
  rates.add(250'000, 2s, 2s);
  rates.add(500'000, 2s, 2s);
  rates.add(250'000, 2s, 2s);
  EXPECT_EQ(rates.peak(), 2'000'000);
  EXPECT_EQ(rates.average(), 1'333'334);
}

TEST(SegmentRatesTest, AShortSegmentCountsTogetherWithTheOneBefore) {
  SegmentRates rates;
  rates.add(250'000, 2s, 2s);
  rates.add(125'000, 100ms, 2s);  // 10 Mbit/s by itself
  EXPECT_EQ(rates.peak(), 1'428'572);
}

}  // namespace
}  // namespace framelane
