// Not built for ThreadSanitizer: one thread uses it.
#include "pipeline/output/hls_options.hpp"

#include <gmock/gmock.h>

#include <chrono>

#include "pipeline/base/failure.hpp"

namespace framelane {
namespace {

using namespace std::chrono_literals;

HlsOptions with(const char* key, const char* value) {
  return read_hls_options("hls", {{key, value}});
}

TEST(HlsOptionsTest, FlagsWithASignChangeTheDefaults) {
  const HlsOptions hls = with("hls_flags", "+program_date_time-delete_segments");
  EXPECT_TRUE(hls.program_date_time);
  EXPECT_FALSE(hls.deletes);
}

TEST(HlsOptionsTest, FlagsWithoutASignReplaceTheDefaults) {
  const HlsOptions hls = with("hls_flags", "independent_segments+program_date_time");
  EXPECT_TRUE(hls.program_date_time);
  EXPECT_TRUE(hls.independent_segments);
  EXPECT_FALSE(hls.deletes);
}

TEST(HlsOptionsTest, TimesMayHaveAFraction) {
  EXPECT_EQ(with("hls_time", "0.5").time, 500ms);
  EXPECT_EQ(with("hls_time", "800ms").time, 800ms);
}

TEST(HlsOptionsTest, NothingLeavesAnEvent) {
  const HlsOptions hls =
      read_hls_options("hls", {{"hls_playlist_type", "event"}, {"hls_list_size", "3"}});
  EXPECT_EQ(hls.list_size, 0u);
  EXPECT_FALSE(hls.deletes);
  EXPECT_TRUE(hls.event);
}

TEST(HlsOptionsTest, WhatIsLeftIsForTheMuxerOfTheSegments) {
  const AvOptions left = without_hls_options({{"hls_time", "2"}, {"mpegts_copyts", "1"}});
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].key, "mpegts_copyts");
}

class WrongHlsOptionTest : public ::testing::TestWithParam<AvOption> {};

TEST_P(WrongHlsOptionTest, IsRefused) {
  EXPECT_THROW(read_hls_options("hls", {GetParam()}), FeedError);
  EXPECT_TRUE(why_hls_option_refused(GetParam().key) || wrong_hls_value(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(
    Options, WrongHlsOptionTest,
    ::testing::Values(
        AvOption{"hls_base_url", "http://h/\n#EXT-X-ENDLIST\n"},
        AvOption{"hls_segment_filename", "a\n%d.ts"}, AvOption{"hls_time", "0"},
        AvOption{"hls_time", "-2"}, AvOption{"hls_time", "soon"}, AvOption{"hls_time", "2h"},
        AvOption{"hls_list_size", "-1"}, AvOption{"hls_list_size", "6x"},
        AvOption{"hls_delete_threshold", ""}, AvOption{"start_number", "-1"},
        AvOption{"start_number", "18446744073709551615"}, AvOption{"hls_segment_type", "ts"},
        AvOption{"hls_playlist_type", "vod"}, AvOption{"hls_segment_filename", "a.ts"},
        AvOption{"hls_segment_filename", "%Y-%d.ts"}, AvOption{"hls_segment_filename", "a%"},
        AvOption{"hls_segment_filename", "a%99999999999999999999d.ts"},
        AvOption{"hls_flags", "single_file"}, AvOption{"hls_flags", "+"},
        AvOption{"hls_flags", "-temp_file"}, AvOption{"hls_flags", "+no_such_flag"},
        AvOption{"hls_enc", "1"}, AvOption{"frag_duration", "1"}));

TEST(HlsOptionsTest, WhatIsRefusedIsNotAlsoKnown) {
  for (const std::string_view name : kHlsOptionNames) EXPECT_FALSE(why_hls_option_refused(name));
}

}  // namespace
}  // namespace framelane
