// Not built for ThreadSanitizer: one thread uses it.
#include "pipeline/output/codec_name.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "pipeline/av/av_ptr.hpp"
#include "tests/pipeline/source/encoded_clip.hpp"

namespace framelane {
namespace {

using HeaderVector = std::vector<std::uint8_t>;

struct CodecNameTest : ::testing::Test {
  CodecNameTest() : parameters(avcodec_parameters_alloc()), packet(make_packet()) {}

  std::string name(AVCodecID codec, const HeaderVector& extradata,
                   const HeaderVector& keyframe = {}) {
    parameters->codec_id = codec;
    av_freep(&parameters->extradata);
    parameters->extradata =
        static_cast<std::uint8_t*>(av_mallocz(extradata.size() + AV_INPUT_BUFFER_PADDING_SIZE));
    if (!extradata.empty()) std::memcpy(parameters->extradata, extradata.data(), extradata.size());
    parameters->extradata_size = static_cast<int>(extradata.size());
    av_packet_unref(packet.get());
    EXPECT_EQ(av_new_packet(packet.get(), static_cast<int>(keyframe.size())), 0);
    if (!keyframe.empty()) std::memcpy(packet->data, keyframe.data(), keyframe.size());
    return codec_name(*parameters, packet.get());
  }

  CodecParametersPtr parameters;
  PacketPtr packet;
};

const HeaderVector kAvcSps{0, 0, 0, 1, 9, 0xf0, 0, 0, 1, 0x67, 0x64, 0x00, 0x1f, 0xac};

TEST_F(CodecNameTest, H264HasProfileConstraintsAndLevelOfTheParameterSet) {
  EXPECT_EQ(name(AV_CODEC_ID_H264, kAvcSps), "avc1.64001f");
  EXPECT_EQ(name(AV_CODEC_ID_H264, {}, kAvcSps), "avc1.64001f");  // MPEG-TS has it in the stream
  EXPECT_EQ(name(AV_CODEC_ID_H264, {1, 0x42, 0xc0, 0x1e, 0xff}), "avc1.42c01e");
}

TEST_F(CodecNameTest, WithoutHeadersAStreamHasNoName) {
  EXPECT_EQ(name(AV_CODEC_ID_H264, {}), "");
  EXPECT_EQ(name(AV_CODEC_ID_H264, {}, {0, 0, 0, 1}), "");
  EXPECT_EQ(name(AV_CODEC_ID_H264, {}, {0, 0, 1, 0x67, 0x64}), "");
  EXPECT_EQ(name(AV_CODEC_ID_HEVC, {}, {0, 0, 1, 0x42, 1, 1, 1}), "");
  EXPECT_EQ(name(AV_CODEC_ID_AV1, {0x81}), "");
  EXPECT_EQ(name(AV_CODEC_ID_MPEG2VIDEO, {}), "");
}

TEST_F(CodecNameTest, HevcHasProfileCompatibilityTierLevelAndConstraints) {
  // Main profile, level 3.1; the emulation prevention byte (03) is no part of it.
  const HeaderVector sps{0, 0,    0, 1, 0x42, 1, 1, 0x01, 0x60, 0,    0,   3,
                         0, 0x90, 0, 0, 3,    0, 0, 3,    0,    0x5d, 0xa0};
  EXPECT_EQ(name(AV_CODEC_ID_HEVC, sps), "hvc1.1.6.L93.90");
  EXPECT_EQ(name(AV_CODEC_ID_HEVC, {}, sps), "hvc1.1.6.L93.90");
  EXPECT_EQ(name(AV_CODEC_ID_HEVC, {1, 0x22, 0x20, 0, 0, 0, 0xb0, 0, 0, 0, 0, 0, 120}),
            "hvc1.2.4.H120.B0");
}

TEST_F(CodecNameTest, Av1HasProfileLevelTierAndDepthOfItsBox) {
  EXPECT_EQ(name(AV_CODEC_ID_AV1, {0x81, 0x05, 0x0c, 0}), "av01.0.05M.08");
  EXPECT_EQ(name(AV_CODEC_ID_AV1, {0x81, 0x0d, 0xcc, 0}), "av01.0.13H.10");
}

TEST_F(CodecNameTest, AacHasTheObjectType) {
  EXPECT_EQ(name(AV_CODEC_ID_AAC, {0x11, 0x90}), "mp4a.40.2");
  EXPECT_EQ(name(AV_CODEC_ID_AAC, {0xf9, 0x40}), "mp4a.40.42");
  EXPECT_EQ(name(AV_CODEC_ID_AAC, {}), "mp4a.40.2");
  parameters->profile = FF_PROFILE_AAC_HE;
  EXPECT_EQ(name(AV_CODEC_ID_AAC, {}), "mp4a.40.5");
}

TEST_F(CodecNameTest, OtherSoundHasTheNameThatItsRegistrationGives) {
  EXPECT_EQ(name(AV_CODEC_ID_MP3, {}), "mp4a.40.34");
  EXPECT_EQ(name(AV_CODEC_ID_AC3, {}), "ac-3");
  EXPECT_EQ(name(AV_CODEC_ID_PCM_ALAW, {}), "");
}

}  // namespace
}  // namespace framelane
