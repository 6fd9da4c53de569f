// Not built for ThreadSanitizer: one thread makes a picture.
#include "pipeline/encode/snapshot.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>

#include "tests/pipeline/source/encoded_clip.hpp"

namespace framelane {
namespace {

using Size = std::pair<int, int>;

FramePtr grey(int width, int height, AVRational shape) {
  FramePtr frame = make_frame();
  frame->format = AV_PIX_FMT_GRAY8;
  frame->width = width;
  frame->height = height;
  frame->sample_aspect_ratio = shape;
  EXPECT_EQ(av_frame_get_buffer(frame.get(), 0), 0);
  return frame;
}

/// As the frame header of a JPEG has it (ITU-T T.81, B.2.2).
Size size_of(const std::string& jpeg) {
  const auto byte = [&](std::size_t at) { return static_cast<std::uint8_t>(jpeg.at(at)); };
  const std::size_t header = jpeg.find("\xff\xc0");
  return {256 * byte(header + 7) + byte(header + 8), 256 * byte(header + 5) + byte(header + 6)};
}

Size made(int width, int height, AVRational shape, int wanted = 0) {
  return size_of(make_jpeg(*grey(width, height, shape), wanted));
}

TEST(SnapshotTest, IsAsLargeAsThePictureIsShownInSquarePixels) {
  EXPECT_EQ(made(64, 48, {0, 1}), Size(64, 48));
  EXPECT_EQ(made(63, 47, {1, 1}), Size(63, 47));
  EXPECT_EQ(made(720, 576, {16, 11}), Size(1047, 576));
  EXPECT_EQ(made(720, 576, {12, 11}), Size(785, 576));
  EXPECT_EQ(made(720, 576, {1, 2}), Size(360, 576));
}

TEST(SnapshotTest, IsAsWideAsAskedForAndKeepsItsShape) {
  EXPECT_EQ(made(720, 576, {64, 45}, 640), Size(640, 360));
  EXPECT_EQ(made(64, 48, {1, 1}, 33), Size(33, 25));
  EXPECT_EQ(made(64, 48, {1, 1}, 640), Size(640, 480));
}

TEST(SnapshotTest, AnyShapeMakesAPictureOfALimitedSize) {
  EXPECT_EQ(made(64, 48, {1000, 1}), Size(8192, 6));
  EXPECT_EQ(made(64, 48, {1, 1000}), Size(1, 48));
  EXPECT_EQ(made(64, 48, {1, 1000}, 8192), Size(11, 8192));
  EXPECT_EQ(made(16, 2, {1, 1'000'000'000}, 8192), Size(1, 8192));
  EXPECT_EQ(made(64, 32, {1, 1}, 8192), Size(8192, 4096));
  EXPECT_EQ(made(64, 64, {1, 1}, 8192), Size(5793, 5793));
}

TEST(SnapshotTest, AKeyframeHasTheShapeOfItsContainerWhereItNamesNone) {
  const testing::Clip clip = testing::encode_clip({.frames = 1});
  auto format = std::make_shared<MediaFormat>();
  format->video.parameters.reset(avcodec_parameters_alloc());
  ASSERT_GE(
      avcodec_parameters_copy(format->video.parameters.get(), clip.format->video.parameters.get()),
      0);
  format->video.parameters->sample_aspect_ratio = {2, 1};
  SnapshotTap::Keyframe keyframe{.packet = make_packet(), .format = format};
  ASSERT_EQ(av_packet_ref(keyframe.packet.get(), clip.packets.front().packet.get()), 0);
  const auto frame = decode_keyframe(keyframe, 64 * 48);
  EXPECT_EQ(size_of(make_jpeg(*frame, 0)), Size(128, 48));
}

}  // namespace
}  // namespace framelane
