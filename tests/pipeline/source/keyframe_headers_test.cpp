// Not built for ThreadSanitizer: what it tests has one thread.
#include "pipeline/source/keyframe_headers.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/pipeline/source/encoded_clip.hpp"

namespace framelane {
namespace {

using testing::Clip;
using testing::ClipPacket;
using testing::ClipSpec;
using testing::encode_clip;

// A stream as in MPEG-TS, with headers in front of every keyframe.
Clip in_band(const std::string& codec, int width, int height) {
  return encode_clip(ClipSpec{.video = codec,
                              .width = width,
                              .height = height,
                              .frames = 20,
                              .gop = 5,
                              .global_header = false});
}

class KeyframeHeadersTest : public ::testing::Test {
 protected:
  std::vector<KeyframeHeaders::Change> changes(const Clip& clip) {
    std::vector<KeyframeHeaders::Change> found;
    for (const ClipPacket& each : clip.packets) {
      if (auto change = headers_->read(*each.packet)) found.push_back(std::move(*change));
    }
    return found;
  }
  void open(const Clip& clip) {
    headers_ = std::make_unique<KeyframeHeaders>(*clip.format->video.parameters);
  }
  std::unique_ptr<KeyframeHeaders> headers_;
};

class KeyframeCodecTest : public KeyframeHeadersTest,
                          public ::testing::WithParamInterface<const char*> {};

TEST_P(KeyframeCodecTest, ANewSizeIsToldOnceAtItsFirstKeyframe) {
  const Clip small = in_band(GetParam(), 64, 48);
  const Clip large = in_band(GetParam(), 128, 96);
  open(small);
  EXPECT_TRUE(changes(small).empty());
  const auto found = changes(large);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].width, 128);
  EXPECT_EQ(found[0].height, 96);
  EXPECT_FALSE(found[0].extradata.empty());
  const auto back = changes(small);
  ASSERT_EQ(back.size(), 1u);
  EXPECT_EQ(back[0].width, 64);
}

INSTANTIATE_TEST_SUITE_P(Codecs, KeyframeCodecTest, ::testing::Values("libx264", "mpeg2video"));

TEST_F(KeyframeHeadersTest, TheExtradataOfAChangeIsItsOwnHeaders) {
  const Clip small = in_band("libx264", 64, 48);
  const Clip large = in_band("libx264", 128, 96);
  open(small);
  changes(small);
  const auto found = changes(large);
  ASSERT_EQ(found.size(), 1u);
  const PacketPtr& key = large.packets.front().packet;
  const auto* end = key->data + key->size;
  EXPECT_NE(std::search(static_cast<const std::uint8_t*>(key->data), end,
                        found[0].extradata.begin(), found[0].extradata.end()),
            end);
}

TEST_F(KeyframeHeadersTest, ASizeThatWasNotAnnouncedRightIsToldAtTheFirstKeyframe) {
  const Clip clip = in_band("libx264", 128, 96);
  for (const int announced : {0, 64}) {
    const CodecParametersPtr parameters = copy_parameters(*clip.format->video.parameters);
    parameters->width = parameters->height = announced;
    headers_ = std::make_unique<KeyframeHeaders>(*parameters);
    const auto found = changes(clip);
    ASSERT_EQ(found.size(), 1u) << announced;
    EXPECT_EQ(found[0].width, 128);
    EXPECT_EQ(found[0].height, 96);
    EXPECT_FALSE(found[0].extradata.empty());
  }
}

TEST_F(KeyframeHeadersTest, WithoutHeadersOfItsOwnAStreamKeepsItsSize) {
  const Clip clip = encode_clip(ClipSpec{.frames = 20, .gop = 5});  // headers in the extradata
  open(clip);
  EXPECT_TRUE(changes(clip).empty());
}

TEST_F(KeyframeHeadersTest, NothingIsReadOfWhatIsNoKeyframe) {
  const Clip small = in_band("libx264", 64, 48);
  const Clip large = in_band("libx264", 128, 96);
  open(small);
  changes(small);
  for (const ClipPacket& each : large.packets) {
    each.packet->flags &= ~AV_PKT_FLAG_KEY;
    EXPECT_FALSE(headers_->read(*each.packet));
  }
}

TEST_F(KeyframeHeadersTest, ACodecOfKeyframesAloneIsLeftToItsDecoder) {
  const Clip small = in_band("mjpeg", 64, 48);
  open(small);
  EXPECT_TRUE(changes(small).empty());
  EXPECT_TRUE(changes(in_band("mjpeg", 128, 96)).empty());
}

TEST_F(KeyframeHeadersTest, DamagedAndEmptyKeyframesTellNothing) {
  const Clip small = in_band("libx264", 64, 48);
  open(small);
  changes(small);
  const PacketPtr packet = make_packet();
  packet->flags |= AV_PKT_FLAG_KEY;
  EXPECT_FALSE(headers_->read(*packet));
  ASSERT_EQ(av_new_packet(packet.get(), 400), 0);
  for (int i = 0; i < packet->size; ++i) packet->data[i] = static_cast<std::uint8_t>(i * 37);
  packet->flags |= AV_PKT_FLAG_KEY;
  EXPECT_FALSE(headers_->read(*packet));
}

}  // namespace
}  // namespace framelane
