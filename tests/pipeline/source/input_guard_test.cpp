// Not built for ThreadSanitizer: one thread reads.
#include "pipeline/source/input_guard.hpp"

#include <gmock/gmock.h>

#include <fstream>

#include "tests/pipeline/source/source_fixture.hpp"

namespace framelane {
namespace {

using testing::clip;
using testing::ffmpeg;
using ::testing::HasSubstr;

/// Files, which tests can make without a server. tests/integration/test_untrusted_inputs.py has the
/// same tricks over HTTP.
class InputGuardTest : public testing::SourceFixture {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(folder / name, std::ios::binary) << text;
    return folder / name;
  }
  /// What is wrong with an input that cannot be used, and is no live one.
  std::string refusal_of(const std::string& url) {
    EXPECT_EQ(failure_of<FeedError>(url), FeedFault::kConfiguration);
    return message;
  }
  std::string segment() {
    ffmpeg("-i " + clip("street_h264.mp4") + " -c copy " + (folder / "1.ts"));
    return "1.ts";
  }
};

constexpr std::string_view kBegin = "#EXTM3U\n#EXT-X-TARGETDURATION:5\n";

TEST_F(InputGuardTest, AFileMayNotNameTheWeb) {
  for (const char* line : {"#EXTINF:5,\nhttp://127.0.0.1:9/1.ts\n",
                           "#EXT-X-MAP:URI=\"http://127.0.0.1:9/1.ts\"\n#EXTINF:5,\n1.ts\n",
                           "#EXT-X-KEY:METHOD=AES-128,URI=\"http://127.0.0.1:9/1.ts\"\r\n"}) {
    const std::string url = write("x.m3u8", std::string(kBegin) + line + "#EXT-X-ENDLIST\n");
    EXPECT_EQ(refusal_of(url), url +
                                   " names http://127.0.0.1:9/1.ts, and a file may not open URLs "
                                   "of http; input.protocols: [default, http] allows it");
  }
}

TEST_F(InputGuardTest, APlaylistIsReadToItsLastLine) {
  const std::string url =
      write("x.m3u8", std::string(kBegin) + "#EXTINF:5,\n" + segment() + "\n#EXT-X-ENDLIST");
  EXPECT_EQ(read(url).frames, 42u);
  input.limits.playlist_size = 1000;
  std::string text(kBegin);
  const std::string end = "#EXTINF:5,\n" + segment() + "\n#EXT-X-ENDLIST\n";
  while (text.size() + end.size() < 1000) text += '#';
  EXPECT_EQ(read(write("x.m3u8", text.substr(0, text.size() - 1) + '\n' + end)).frames, 42u);
}

TEST_F(InputGuardTest, APlaylistThatIsTooLargeIsRefused) {
  input.limits.playlist_size = 1000;
  for (const std::string& begin : {std::string(kBegin), std::string("<MPD "),
                                   std::string("\xEF\xBB\xBF<?xml version=\"1.0\"?>")}) {
    const std::string url = write("x.m3u8", begin + std::string(2000, '\n'));
    EXPECT_EQ(refusal_of(url), url +
                                   " sends a playlist of more than input.limits.playlist_size "
                                   "(1000 bytes); raise it if that is right");
  }
}

TEST_F(InputGuardTest, AScriptOfConcatReadsFilesAlone) {
  const std::string script =
      write("x.ffconcat", "ffconcat version 1.0\nfile " + segment() + "\nfile 1.ts\n");
  EXPECT_EQ(read(script).frames, 84u);
  input.formats = {"mov", "mpegts"};
  EXPECT_EQ(refusal_of(script),
            script +
                " is of the format concat, which input.formats does not allow; input.formats: "
                "[mov, mpegts, concat] allows it");
}

TEST_F(InputGuardTest, MoreStreamsThanAllowedAreRefused) {
  const std::string path = folder / "four.mkv";
  ffmpeg("-i " + clip("street_h264.mp4") +
         " -f lavfi -i sine=duration=1 -map 0:v -map 1:a -map 1:a -map 1:a -c:v copy -t 1 " + path);
  input.limits.streams = 4;
  EXPECT_GT(read(path).frames, 0u);
  input.limits.streams = 3;
  EXPECT_EQ(refusal_of(path), path +
                                  " has more streams than input.limits.streams allows (3); raise "
                                  "it if that is right");
}

TEST_F(InputGuardTest, LargerPicturesThanAllowedAreRefused) {
  const std::string path = clip("street_h264.mp4");  // 768x576
  input.limits.pixels = 768 * 576;
  EXPECT_EQ(read(path).frames, 42u);
  input.limits.pixels -= 1;
  EXPECT_EQ(refusal_of(path), path +
                                  " has pictures of 768x576, more than input.limits.pixels allows "
                                  "(442367 pixels); raise it if that is right");
}

TEST_F(InputGuardTest, PicturesThatGrowBeyondTheLimitEndTheSource) {
  const std::string small = folder / "small.ts";
  const std::string large = folder / "large.ts";
  for (const auto& [path, size] : {std::pair(small, "64x48"), std::pair(large, "640x480")}) {
    ffmpeg("-f lavfi -i testsrc2=rate=10:duration=1:size=" + std::string(size) +
           " -c:v libx264 -bf 0 " + path);
  }
  const testing::Bytes tail = testing::read_file(large);
  testing::Bytes both = testing::read_file(small);
  both.insert(both.end(), tail.begin(), tail.end());
  testing::write_file(folder / "both.ts", both);
  EXPECT_EQ(read(folder / "both.ts").frames, 20u);
  input.limits.pixels = 320 * 240;
  EXPECT_THAT(refusal_of(folder / "both.ts"), HasSubstr("has pictures of 640x480, more than"));
}

TEST_F(InputGuardTest, ADecoderThatIsNotAllowedIsNotUsed) {
  input.decoders = {"mjpeg"};
  EXPECT_EQ(refusal_of(clip("street_h264.mp4")),
            "the source's video needs the decoder h264, which input.decoders does not allow; "
            "input.decoders: [mjpeg, h264] allows it");
  EXPECT_EQ(faults(DecodeFault::kUnsupported), 1u);
  decode = false;  // nothing is decoded
  EXPECT_GT(read(clip("street_h264.mp4")).packet_pts.size(), 0u);
}

TEST_F(InputGuardTest, SoundThatMayNotBeDecodedSaysWhy) {
  const std::string path = folder / "sound.mp4";
  ffmpeg("-i " + clip("street_h264.mp4") + " -f lavfi -i sine=duration=1 -c:v copy -c:a aac -t 1 " +
         path);
  want_audio = true;
  EXPECT_EQ(open(path)->info().media->audio->decode_refusal, "");
  input.decoders = {"h264"};
  EXPECT_THAT(open(path)->info().media->audio->decode_refusal,
              HasSubstr("needs the decoder aac, which input.decoders does not allow"));
}

}  // namespace
}  // namespace framelane
