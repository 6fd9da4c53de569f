// Not built for ThreadSanitizer: what it tests has one thread.
#include "pipeline/output/container.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline/base/failure.hpp"
#include "pipeline/output/output.hpp"

namespace framelane {
namespace {

OutputOptions output(const std::string& url, const std::string& format = {}) {
  OutputOptions options;
  options.name = "out";
  options.url = url;
  options.format = format;
  return options;
}

OutputKind kind_of(const std::string& url, const std::string& format = {}) {
  return container_of(output(url, format)).kind;
}

std::string muxer_of(const std::string& url, const std::string& format = {}) {
  const AVOutputFormat* muxer = container_of(output(url, format)).muxer;
  return muxer ? muxer->name : "";
}

std::string problem_of(const OutputOptions& options) {
  try {
    check_container(options, container_of(options));
  } catch (const FeedError& error) {
    EXPECT_EQ(error.code(), FeedFault::kConfiguration);
    return error.what();
  }
  return "";
}

TEST(ContainerTest, TheEndingNamesTheContainerOfAFile) {
  EXPECT_EQ(muxer_of("/a/b.mp4"), "mp4");
  EXPECT_EQ(muxer_of("b.mkv"), "matroska");
  EXPECT_EQ(muxer_of("file:/a/b.ts"), "mpegts");
  EXPECT_EQ(muxer_of("b.yuv"), "rawvideo");
  EXPECT_EQ(kind_of("/a/%H:%M.mp4"), OutputKind::kFile);
}

TEST(ContainerTest, TheSchemeNamesTheContainerOfAPeer) {
  EXPECT_EQ(muxer_of("rtmp://host/app/key"), "flv");
  EXPECT_EQ(muxer_of("rtsp://host/path"), "rtsp");
  EXPECT_EQ(muxer_of("srt://host:1"), "mpegts");
  EXPECT_EQ(muxer_of("udp://host:1"), "mpegts");
  EXPECT_EQ(kind_of("rtmp://host/app/key.mp4"), OutputKind::kStream);
}

TEST(ContainerTest, SchemesMayBeInCapitals) {
  EXPECT_EQ(muxer_of("RTSP://host/path"), "rtsp");
  EXPECT_EQ(kind_of("NULL:"), OutputKind::kNull);
  const Container container = container_of(output("FILE:///a/b.ts"));
  EXPECT_EQ(container.url, "/a/b.ts");
  EXPECT_EQ(container.kind, OutputKind::kFile);
}

TEST(ContainerTest, AFormatWinsOverTheEnding) { EXPECT_EQ(muxer_of("a.mp4", "mpegts"), "mpegts"); }

TEST(ContainerTest, APlaylistIsKnownByItsEnding) {
  EXPECT_EQ(kind_of("/a/index.m3u8"), OutputKind::kPlaylist);
}

TEST(ContainerTest, NullDiscards) {
  EXPECT_EQ(kind_of("null:"), OutputKind::kNull);
  EXPECT_EQ(kind_of("x", "null"), OutputKind::kNull);
}

TEST(ContainerTest, ADeviceIsNoFileToRename) {
  EXPECT_EQ(container_on_disk(output("/dev/null", "mpegts")).kind, OutputKind::kStream);
}

TEST(ContainerTest, ThePathIsLookedAtOnlyOnTheOutputsOwnThread) {
  EXPECT_EQ(kind_of("/dev/null", "mpegts"), OutputKind::kFile);
}

TEST(ContainerTest, ADashIsStandardOutput) {
  const Container container = container_of(output("-", "mpegts"));
  EXPECT_EQ(container.kind, OutputKind::kStream);
  EXPECT_EQ(container.url, "pipe:1");
}

TEST(ContainerTest, AnUnknownEndingIsAProblemThatNamesTheUrl) {
  EXPECT_THAT(problem_of(output("/a/b.foo")), ::testing::HasSubstr("/a/b.foo"));
}

TEST(ContainerTest, AnUnknownFormatIsAProblemThatNamesIt) {
  EXPECT_THAT(problem_of(output("/a/b.mp4", "nonsense")), ::testing::HasSubstr("nonsense"));
}

TEST(ContainerTest, AnEmptyUrlIsAProblem) {
  EXPECT_THAT(problem_of(output("")), ::testing::HasSubstr("the url names no file"));
  EXPECT_THAT(problem_of(output("file:", "mp4")), ::testing::HasSubstr("the url names no file"));
  EXPECT_EQ(problem_of(output("", "null")), "");
}

TEST(ContainerTest, SegmentsOfAPlaylistAreTheMuxersOwn) {
  OutputOptions options = output("/a/b.m3u8");
  options.segment.emplace();
  EXPECT_THAT(problem_of(options), ::testing::HasSubstr("segment"));
}

TEST(ContainerTest, AProblemShowsNoSecret) {
  EXPECT_THAT(problem_of(output("http://user:hunter22@host/b.foo")),
              ::testing::Not(::testing::HasSubstr("hunter22")));
}

struct AudioCase {
  const char* url;
  AVCodecID codec;
  bool held;
};

class ContainerAudioTest : public ::testing::TestWithParam<AudioCase> {};

TEST_P(ContainerAudioTest, IsHeldOnlyWherePlayersReadIt) {
  EXPECT_EQ(holds_audio(container_of(output(GetParam().url)), GetParam().codec), GetParam().held);
}

INSTANTIATE_TEST_SUITE_P(Table, ContainerAudioTest,
                         ::testing::Values(AudioCase{"a.mp4", AV_CODEC_ID_AAC, true},
                                           AudioCase{"a.mp4", AV_CODEC_ID_PCM_ALAW, false},
                                           AudioCase{"a.ts", AV_CODEC_ID_MP2, true},
                                           AudioCase{"a.ts", AV_CODEC_ID_PCM_MULAW, false},
                                           AudioCase{"a.m3u8", AV_CODEC_ID_AAC, true},
                                           AudioCase{"a.m3u8", AV_CODEC_ID_PCM_ALAW, false},
                                           AudioCase{"a.m3u8", AV_CODEC_ID_OPUS, false},
                                           AudioCase{"a.mkv", AV_CODEC_ID_PCM_ALAW, true},
                                           AudioCase{"a.mkv", AV_CODEC_ID_OPUS, true},
                                           AudioCase{"a.webm", AV_CODEC_ID_AAC, false},
                                           AudioCase{"rtmp://h/a", AV_CODEC_ID_AAC, true},
                                           AudioCase{"a.yuv", AV_CODEC_ID_AAC, false}));

struct VideoCase {
  const char* url;
  AVCodecID codec;
  bool held;
};

class ContainerVideoTest : public ::testing::TestWithParam<VideoCase> {};

TEST_P(ContainerVideoTest, IsHeldOrRefused) {
  const OutputOptions options = output(GetParam().url);
  const auto check = [&] { check_video(options, container_of(options), GetParam().codec); };
  if (GetParam().held) {
    EXPECT_NO_THROW(check());
  } else {
    EXPECT_THROW(check(), FeedError);
  }
}

INSTANTIATE_TEST_SUITE_P(Table, ContainerVideoTest,
                         ::testing::Values(VideoCase{"a.mp4", AV_CODEC_ID_H264, true},
                                           VideoCase{"a.mp4", AV_CODEC_ID_RAWVIDEO, false},
                                           VideoCase{"a.mkv", AV_CODEC_ID_FFV1, true},
                                           VideoCase{"a.ts", AV_CODEC_ID_HEVC, true},
                                           VideoCase{"a.ts", AV_CODEC_ID_MJPEG, false},
                                           VideoCase{"a.m3u8", AV_CODEC_ID_MPEG4, false},
                                           VideoCase{"a.yuv", AV_CODEC_ID_RAWVIDEO, true},
                                           VideoCase{"a.yuv", AV_CODEC_ID_H264, false}));

}  // namespace
}  // namespace framelane
