// Not built for ThreadSanitizer: a function of one thread.
#include "pipeline/source/access_unit.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <vector>

namespace framelane {
namespace {

bool without_picture(AVCodecID codec, std::vector<std::uint8_t> data,
                     std::vector<std::uint8_t> extradata = {}) {
  AVPacket packet{};
  packet.data = data.data();
  packet.size = static_cast<int>(data.size());
  AVCodecParameters parameters{};
  parameters.codec_id = codec;
  parameters.extradata = extradata.data();
  parameters.extradata_size = static_cast<int>(extradata.size());
  return is_without_picture(packet, parameters);
}

TEST(AccessUnitTest, ADelimiterIsNoPicture) {
  EXPECT_TRUE(without_picture(AV_CODEC_ID_H264, {0, 0, 0, 1, 9, 0xf0}));
  EXPECT_TRUE(without_picture(AV_CODEC_ID_HEVC, {0, 0, 0, 1, 35 << 1, 1, 0x50}));
}

TEST(AccessUnitTest, ParameterSetsAreNoPicture) {
  EXPECT_TRUE(without_picture(AV_CODEC_ID_H264, {0, 0, 0, 1, 0x67, 66, 0, 0, 1, 0x68, 7}));
}

TEST(AccessUnitTest, ASliceIsOneHoweverMuchIsBeforeIt) {
  EXPECT_FALSE(without_picture(AV_CODEC_ID_H264,
                               {0, 0, 0, 1, 9, 0xf0, 0, 0, 1, 0x67, 66, 0, 0, 1, 0x65, 7}));
  EXPECT_FALSE(
      without_picture(AV_CODEC_ID_HEVC, {0, 0, 0, 1, 35 << 1, 1, 0x50, 0, 0, 1, 1 << 1, 1}));
}

TEST(AccessUnitTest, WhatIsNotKnownIsKept) {
  EXPECT_FALSE(without_picture(AV_CODEC_ID_H264, {}));
  EXPECT_FALSE(without_picture(AV_CODEC_ID_H264, {0, 0, 1}));
  EXPECT_FALSE(without_picture(AV_CODEC_ID_H264, {1, 2, 3, 4}));
  EXPECT_FALSE(without_picture(AV_CODEC_ID_MPEG2VIDEO, {0, 0, 1, 9}));
  // Of a container that gives lengths: a unit of one byte looks like a start code.
  EXPECT_FALSE(without_picture(AV_CODEC_ID_H264, {0, 0, 0, 1, 9}, {1, 66, 0, 30}));
}

}  // namespace
}  // namespace framelane
