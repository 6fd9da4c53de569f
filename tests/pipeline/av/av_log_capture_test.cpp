#include "pipeline/av/av_log_capture.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace framelane {
namespace {

TEST(AvLogCaptureTest, KeepsTheLastErrorWithoutItsPrefixes) {
  const AvLogCapture capture;
  EXPECT_TRUE(AvLogCapture::take("[libx264 @ 0x5581] [Eval @ 0x7ffc] Undefined constant"));
  EXPECT_TRUE(AvLogCapture::take("[mov,mp4 @ 0x7f80] moov atom not found."));
  EXPECT_EQ(capture.reason("Invalid data"), "moov atom not found");
}

TEST(AvLogCaptureTest, TheFirstErrorOfTheThreadsCapture) {
  EXPECT_EQ(AvLogCapture::first(), "");
  const AvLogCapture capture;
  EXPECT_EQ(AvLogCapture::first(), "");
  AvLogCapture::take("[h264 @ 0x1] Cannot load libnvcuvid.so.1");
  AvLogCapture::take("[h264 @ 0x1] Failed setup for format cuda");
  EXPECT_EQ(AvLogCapture::first(), "Cannot load libnvcuvid.so.1");
}

TEST(AvLogCaptureTest, WithoutAnErrorTheOtherReasonStands) {
  const AvLogCapture capture;
  EXPECT_EQ(capture.reason("Invalid data"), "Invalid data");
}

TEST(AvLogCaptureTest, NothingIsTakenOnceItIsGone) {
  { const AvLogCapture capture; }
  EXPECT_FALSE(AvLogCapture::take("[tcp @ 0x1] refused"));
}

TEST(AvLogCaptureTest, OtherThreadsGoOnLogging) {
  const AvLogCapture capture;
  bool taken = true;
  std::thread([&taken] { taken = AvLogCapture::take("error"); }).join();
  EXPECT_FALSE(taken);
}

}  // namespace
}  // namespace framelane
