// Not built for ThreadSanitizer: one thread uses it.
#include "pipeline/output/hls_files.hpp"

#include <gmock/gmock.h>

#include <string>

namespace framelane {
namespace {

using ::testing::ElementsAre;

TEST(NumberSeriesTest, ANameHasItsNumber) {
  EXPECT_EQ(NumberSeries::parse("a%d.ts")->name(7), "a7.ts");
  EXPECT_EQ(NumberSeries::parse("a%03d.ts")->name(7), "a007.ts");
  EXPECT_EQ(NumberSeries::parse("a%03d.ts")->name(12345), "a12345.ts");
}

TEST(NumberSeriesTest, OnlyANameThatItGivesHasANumber) {
  const NumberSeries series = *NumberSeries::parse("a%03d.ts");
  EXPECT_EQ(series.number_of("a007.ts"), 7u);
  EXPECT_EQ(series.number_of("a12345.ts"), 12345u);
  for (const char* name : {"a7.ts", "a0007.ts", "a.ts", "a-07.ts", "a007.tss", "b007.ts", "a007",
                           "a1000000000000000.ts", ""}) {
    EXPECT_FALSE(series.number_of(name)) << name;
  }
}

TEST(HlsFilesTest, FilesStandBesideThePlaylist) {
  const HlsFiles files("/live/cam.m3u8", "");
  EXPECT_EQ(files.segment(7, false), "/live/cam-7.ts");
  EXPECT_EQ(files.segment(7, true), "/live/cam-7.m4s");
  EXPECT_EQ(files.header(7), "/live/cam-init-7.mp4");
  EXPECT_EQ(files.relative(files.header(7)), "cam-init-7.mp4");
}

TEST(HlsFilesTest, FindsTheFileOfAName) {
  const HlsFiles files("/live/cam.m3u8", "/segments/cam%03d.ts");
  EXPECT_EQ(files.relative(files.segment(7, false)), "../segments/cam007.ts");
  EXPECT_EQ(files.find("../segments/cam007.ts"), "/segments/cam007.ts");
  EXPECT_EQ(files.find("cam-init-7.mp4"), "/live/cam-init-7.mp4");
  EXPECT_EQ(files.segment_number("cam-init-7.mp4"), std::nullopt);
}

TEST(HlsFilesTest, FindsNothingElse) {
  const HlsFiles files("/live/cam.m3u8", "");
  for (const char* name : {"cam.m3u8", "../cam-7.ts", "/live/cam-7.ts", "/etc/passwd", "a/cam-7.ts",
                           "./cam-7.ts", "cam-07.ts", "cam7.ts", ""}) {
    EXPECT_FALSE(files.find(name)) << name;
  }
}

TEST(HlsFilesTest, APercentSignOfThePlaylistIsNoFieldOfATime) {
  EXPECT_THAT(HlsFiles("100%.m3u8", "").patterns(),
              ElementsAre("100%%-%s.ts", "100%%-%s.m4s", "100%%-init-%s.mp4"));
}

TEST(HlsFilesTest, APlayerFindsFilesByNamesWithoutCharactersOfUris) {
  for (const char* name :
       {"#cam.m3u8", "a?b.m3u8", "100%.m3u8", "a\"b.m3u8", "a\\b.m3u8", "cam:1.m3u8"}) {
    EXPECT_TRUE(HlsFiles(name, "").why_not_found("")) << name;
  }
  EXPECT_TRUE(HlsFiles("live/cam.m3u8", "live/a#b/%d.ts").why_not_found(""));
  EXPECT_TRUE(HlsFiles("cam#1.m3u8", "seg%d.ts").why_not_found("")) << "of headers";
  for (const char* name : {"cam 1.m3u8", "caméra.m3u8", "disk#1/cam?/a.m3u8", "a,b&c=d.m3u8"}) {
    EXPECT_FALSE(HlsFiles(name, "").why_not_found("")) << name;
  }
  EXPECT_FALSE(HlsFiles("cam:1.m3u8", "").why_not_found("http://h/"));
  EXPECT_FALSE(HlsFiles("live/a.m3u8", "live/s/cam:%d.ts").why_not_found(""));
}

}  // namespace
}  // namespace framelane
