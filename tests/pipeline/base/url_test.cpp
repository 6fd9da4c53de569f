// Not built for ThreadSanitizer: what it tests has one thread.
#include "pipeline/base/url.hpp"

#include <gtest/gtest.h>

namespace framelane {
namespace {

TEST(UrlTest, SchemesAreReadAsFfmpegReadsThem) {
  EXPECT_EQ(url_scheme("RTSP://camera/1"), "rtsp");
  EXPECT_EQ(url_scheme("lavfi:testsrc2=size=64x48"), "lavfi");
  EXPECT_EQ(url_scheme("/srv/a:b.mp4"), "");
  EXPECT_EQ(url_scheme("clip.mp4"), "");
}

TEST(UrlTest, PathsFileUrlsAndStandardInputAreLocal) {
  EXPECT_EQ(local_path("/srv/clip.mp4"), "/srv/clip.mp4");
  EXPECT_EQ(local_path("file:clip.mp4"), "clip.mp4");
  EXPECT_EQ(local_path("file:///srv/clip.mp4"), "///srv/clip.mp4");
  EXPECT_EQ(local_path("-"), "-");
  EXPECT_EQ(local_path("pipe:0"), "-");
  EXPECT_EQ(local_path("tcp://10.0.0.4:9000"), std::nullopt);
}

TEST(UrlTest, TheHostStandsBehindTheLastAtSign) {
  EXPECT_EQ(url_host("rtsp://viewer:p@ss@camera.lan:554/stream?a=b@c"), "camera.lan");
  EXPECT_EQ(url_host("rtsp://[fe80::1]:554/"), "fe80::1");
  EXPECT_EQ(url_host("srt://10.0.0.4:9000?mode=caller"), "10.0.0.4");
  EXPECT_EQ(url_host("/srv/clip.mp4"), "");
}

}  // namespace
}  // namespace framelane
