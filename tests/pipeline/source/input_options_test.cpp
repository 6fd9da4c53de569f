// Not built for ThreadSanitizer: what it tests has one thread.
#include "pipeline/source/input_options.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace framelane {
namespace {

bool live(const std::string& url, const std::string& format = "") {
  InputOptions input;
  input.url = url;
  input.format = format;
  return is_live(input);
}

TEST(IsLiveTest, NetworkSourcesAndCaptureDevicesAre) {
  for (const char* url :
       {"rtsp://c/1", "rtmp://c/1", "srt://c:1", "udp://239.0.0.1:5000", "tcp://c:1", "rtp://c:1",
        "/dev/video0", "v4l2:/dev/video1", "satip://c/?freq=1", "rtmpe://c/1", "rtmpte://c/1",
        "rtmpts://c/1", "mmst://c/1", "rist://c:1"}) {
    EXPECT_TRUE(live(url)) << url;
  }
  EXPECT_TRUE(live(":0.0", "x11grab"));
}

TEST(IsLiveTest, FilesPipesAndTestSourcesAreNot) {
  for (const char* url : {"/srv/clip.mp4", "clip.mp4", "file:clip.mp4", "-", "pipe:0",
                          "lavfi:testsrc2=size=64x48:rate=5", "/dev/videos/clip.mp4"}) {
    EXPECT_FALSE(live(url)) << url;
  }
}

TEST(IsLiveTest, HttpIsNotUntilItsAnswerSaysSo) {
  EXPECT_FALSE(live("http://host/clip.mp4"));
  EXPECT_FALSE(live("https://host/live/index.m3u8?token=1"));
  EXPECT_FALSE(live("http://camera/video.mjpg?user=1"));
  EXPECT_FALSE(live("http://camera/cgi-bin/stream", "mpjpeg"));
}

TEST(IsLiveTest, RealtimePaceMakesAFileLive) {
  InputOptions input;
  input.url = "clip.mp4";
  input.pace = InputOptions::Pace::kRealtime;
  EXPECT_TRUE(is_live(input));
}

bool waits(const std::string& url, AvOptions options = {}) {
  InputOptions input;
  input.url = url;
  input.options = std::move(options);
  return waits_for_reader(input);
}

TEST(WaitsForReaderTest, ConnectionsAndFilesDo) {
  for (const char* url : {"tcp://c:1", "http://c/video.mjpg", "rtmp://c/1", "rtsps://c/1",
                          "srt://c:1", "clip.mp4", "-"}) {
    EXPECT_TRUE(waits(url)) << url;
  }
  EXPECT_TRUE(waits("rtsp://c/1", {{"rtsp_transport", "tcp", true}}));
}

TEST(WaitsForReaderTest, DatagramsAndCaptureDevicesDoNot) {
  for (const char* url : {"udp://239.0.0.1:5000", "rtp://c:1", "rtsp://c/1", "satip://c/?freq=1",
                          "camera.sdp", "/dev/video0", "v4l2:/dev/video1"}) {
    EXPECT_FALSE(waits(url)) << url;
  }
  EXPECT_FALSE(waits("rtsp://c/1", {{"rtsp_transport", "udp"}}));
}

}  // namespace
}  // namespace framelane
