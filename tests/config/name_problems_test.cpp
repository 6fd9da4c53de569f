#include <gmock/gmock.h>

#include "tests/config/wrong_config.hpp"

namespace framelane {
namespace {

const std::vector<Wrong> kNames{
    {"UnknownEncoder",
     encode_with("libx265k"),
     {"f.yaml:1:59: feeds.a.encodes.m.video.codec: \"libx265k\" is not a video encoder of this "
      "FFmpeg; did you mean \"libx265\"?"}},
    {"EncoderByHalfItsName",
     encode_with("{name: x264}"),
     {"f.yaml:1:66: feeds.a.encodes.m.video.codec.name: \"x264\" is not a video encoder of this "
      "FFmpeg; perhaps libx264, libx264rgb"}},
    {"CodecForEncoder",
     encode_with("[ffv1, theora]"),
     {"f.yaml:1:66: feeds.a.encodes.m.video.codec[1]: \"theora\" is a codec and not an encoder; "
      "name "
      "one of its encoders: libtheora"}},
    {"EncoderOfSound",
     encode_with("pcm_s16le"),
     {"f.yaml:1:59: feeds.a.encodes.m.video.codec: \"pcm_s16le\" is not a video encoder of this "
      "FFmpeg; framelane devices lists them"}},
    {"EncoderOfPicturesForTheSound",
     feed_with(", encodes: {m: {audio: {codec: [aac, libx264]}}}"),
     {"f.yaml:1:65: feeds.a.encodes.m.audio.codec[1]: \"libx264\" is not an audio encoder of this "
      "FFmpeg; ffmpeg -encoders lists them"}},
    {"UnknownAudioEncoderOption",
     feed_with(", encodes: {m: {audio: {codec: {name: aac, options: {aac_codr: fast}}}}}"),
     {"f.yaml:1:81: feeds.a.encodes.m.audio.codec.options.aac_codr: is not an option of aac; did "
      "you mean \"aac_coder\"?"}},
    {"SoundThatTheContainerCannotHold",
     feed_with(", encodes: {m: {audio: {codec: pcm_s16le}}}, outputs: {o: {url: x.mp4}}"),
     {"f.yaml:1:92: feeds.a.outputs.o.url: takes encode \"m\", whose audio.codec is nothing that "
      "players can read in mp4; use aac"}},
    {"VideoThatPlayersOfAPlaylistDoNotTake",
     feed_with(", encodes: {m: {video: {codec: mpeg2video}}}, outputs: {o: {url: x.m3u8}}"),
     {"f.yaml:1:93: feeds.a.outputs.o.url: takes encode \"m\", whose codec mpeg2video is nothing "
      "for it: the container hls cannot hold mpeg2video video; use H.264 or HEVC, which players "
      "take"}},
    {"OnlyEncodersThatAreNotBuiltIn",
     encode_with("[h264_mf, hevc_mf]"),
     {"f.yaml:1:60: feeds.a.encodes.m.video.codec[0]: \"h264_mf\" is an encoder that this FFmpeg "
      "was built without, and no other is named; add one",
      "f.yaml:1:69: feeds.a.encodes.m.video.codec[1]: \"hevc_mf\" is an encoder that this FFmpeg "
      "was built without, and no other is named; add one"}},
    {"UnknownEncoderInAProfileNobodyUses",
     "profiles: {p: {encodes: {m: {video: {codec: libx265k}}}}}\n" + feed_with(""),
     {"f.yaml:1:45: profiles.p.encodes.m.video.codec: \"libx265k\" is not a video encoder of this "
      "FFmpeg; did you mean \"libx265\"?"}},
    {"UnknownEncoderOption",
     encode_with("{name: libx264, options: {presett: fast}}"),
     {"f.yaml:1:85: feeds.a.encodes.m.video.codec.options.presett: is not an option of libx264; "
      "did "
      "you mean \"preset\"?"}},
    {"EncoderOptionFarFromAll",
     encode_with("{name: libx264, options: {quality_of_life: 1}}"),
     {"f.yaml:1:85: feeds.a.encodes.m.video.codec.options.quality_of_life: is not an option of "
      "libx264; ffmpeg -h encoder=libx264 lists them"}},
    {"UnknownDemuxer",
     input_with(", format: matrosca"),
     {"f.yaml:1:37: feeds.a.input.format: is not a demuxer of this FFmpeg; did you mean "
      "\"matroska\"?"}},
    {"UnknownMuxer",
     output_with("url: x, format: matrosca"),
     {"f.yaml:1:60: feeds.a.outputs.o.format: is not a container of this FFmpeg; did you mean "
      "\"matroska\"?"}},
    {"EndingThatTellsNothing",
     output_with("url: x.mp5"),
     {"f.yaml:1:49: feeds.a.outputs.o.url: has no ending that names a container; use .mp4, .mkv, "
      ".ts, .m3u8 or another known one, or set format"}},
    {"SchemeInCapitals",
     "feeds: {a: {input: {url: 'RTSP://h/'}, outputs: {o: {url: 'File:x.mp4'}}}}\n",
     {"f.yaml:1:26: feeds.a.input.url: begins with \"RTSP:\", and FFmpeg knows schemes in lower "
      "case only; write rtsp:",
      "f.yaml:1:59: feeds.a.outputs.o.url: begins with \"File:\", and FFmpeg knows schemes in "
      "lower case only; write file:"}},
    {"InputsThatNameNoPeer",
     "feeds: {a: {input: {url: 'rtsp://h:99999999/'}}, b: {input: {url: 'rtsp://u:p/w@h/x'}}, "
     "c: {input: {url: 'tcp://host'}}, d: {input: {url: 'srt://:99999999'}}, "
     "e: {input: {url: 'udp://'}}, f: {input: {url: 'http:///x'}}}\n",
     {"f.yaml:1:26: feeds.a.input.url: names a port that is none; use 1 to 65535, and write the "
      "characters / ? # @ of a password as %2F %3F %23 %40",
      "f.yaml:1:67: feeds.b.input.url: names a port that is none; use 1 to 65535, and write the "
      "characters / ? # @ of a password as %2F %3F %23 %40",
      "f.yaml:1:106: feeds.c.input.url: names no port, which tcp needs; write tcp://HOST:PORT",
      "f.yaml:1:139: feeds.d.input.url: names a port that is none; use 1 to 65535, and write the "
      "characters / ? # @ of a password as %2F %3F %23 %40",
      "f.yaml:1:177: feeds.e.input.url: names no host; write udp://HOST:PORT",
      "f.yaml:1:206: feeds.f.input.url: names no host; write http://HOST/"}},
    {"OutputsThatNameNoPeer",
     "feeds: {a: {input: {url: x.mp4}, outputs: {r: {url: 'rtmp://', format: flv}, "
     "s: {url: 'udp://:5000', format: mpegts}, t: {url: 'rtp://h', format: rtp_mpegts}}}}\n",
     {"f.yaml:1:53: feeds.a.outputs.r.url: names no host; write rtmp://HOST/",
      "f.yaml:1:87: feeds.a.outputs.s.url: names no host; write udp://HOST:PORT",
      "f.yaml:1:128: feeds.a.outputs.t.url: names no port, which rtp needs; write "
      "rtp://HOST:PORT"}},
    {"SegmentNameThatIsTooLong",
     output_with("url: x.m3u8, options: {hls_segment_filename: " + std::string(300, 'a') +
                 "%d.ts}"),
     {"f.yaml:1:89: feeds.a.outputs.o.options.hls_segment_filename: has a name of 304 bytes "
      "between two slashes or at its end, and a name may have 239 there; shorten it"}},
    {"SegmentNameThatIsAFolder",
     output_with("url: x.m3u8, options: {hls_segment_filename: '%d/'}"),
     {"f.yaml:1:89: feeds.a.outputs.o.options.hls_segment_filename: names a folder; add the name "
      "of a file"}},
    {"LinesInAPlaylistsNames",
     output_with("url: x.m3u8, options: {hls_segment_filename: \"a\\n%d.ts\", hls_base_url: "
                 "\"a\\n#EXT\"}"),
     {"f.yaml:1:89: feeds.a.outputs.o.options.hls_segment_filename: is not a path with one %d or "
      "%0Nd, no other percent sign, and no control characters",
      "f.yaml:1:115: feeds.a.outputs.o.options.hls_base_url: is not the beginning of a URI, "
      "without control characters, quotation marks or #"}},
    {"PlaylistWhoseSegmentsNoPlayerFinds",
     output_with("url: 'cam#1.m3u8'"),
     {"f.yaml:1:49: feeds.a.outputs.o.url: names segments with the character #, which has another "
      "meaning in a playlist: players would not find them. Use another name"}},
    {"FolderInsteadOfAFile",
     output_with("url: /rec/, format: mp4"),
     {"f.yaml:1:49: feeds.a.outputs.o.url: names a folder; add the name of a file"}},
    {"FolderInsteadOfAPlaylist",
     output_with("url: /rec/.., format: hls"),
     {"f.yaml:1:49: feeds.a.outputs.o.url: names a folder; add the name of a file"}},
    {"NameThatNoFileSystemTakes",
     output_with("url: /rec/" + std::string(250, 'n') + ".mp4"),
     {"f.yaml:1:49: feeds.a.outputs.o.url: has a name of 254 bytes between two slashes or at its "
      "end, and a name may have 239 there; shorten it"}},
    {"PathThatNoFileSystemTakes",
     output_with("url: " +
                 [] {
                   std::string path;
                   for (int i = 0; i < 1040; ++i) path += "/rec";
                   return path;
                 }() +
                 ".mp4"),
     {"f.yaml:1:49: feeds.a.outputs.o.url: has 4164 bytes, and a path may have 4079; shorten it"}},
    {"UnknownInputOption",
     input_with(", options: {rtsp_transprot: tcp}"),
     {"f.yaml:1:39: feeds.a.input.options.rtsp_transprot: is not an option of FFmpeg's protocols, "
      "demuxers and decoders; did you mean \"rtsp_transport\"?"}},
    {"PersistentConnection",
     input_with(", options: {http_persistent: 1}"),
     {"f.yaml:1:39: feeds.a.input.options.http_persistent: is refused: framelane looks at each "
      "playlist before FFmpeg does, on a connection of its own; remove it"}},
    {"OptionOfRawVideo",
     input_with(
         ", format: rawvideo, size: 4x4, rate: 1, pixel_format: gray, options: {threads: 1}"),
     {"f.yaml:1:97: feeds.a.input.options.threads: has no effect on raw video, which is not read "
      "through FFmpeg; remove it"}},
    {"UnknownMuxerOption",
     output_with("url: x.mp4, options: {movflag: faststart}"),
     {"f.yaml:1:66: feeds.a.outputs.o.options.movflag: is not an option of the container mp4 here; "
      "did you mean \"movflags\"?"}},
    {"PlaylistOptionThatIsRefused",
     output_with("url: x.m3u8, options: {hls_enc: 1}"),
     {"f.yaml:1:67: feeds.a.outputs.o.options.hls_enc: is refused: framelane does not encrypt "
      "segments; let the server ask for a password and use HTTPS"}},
    {"PlaylistOptionMisspelt",
     output_with("url: x.m3u8, options: {hls_tme: 1}"),
     {"f.yaml:1:67: feeds.a.outputs.o.options.hls_tme: is not an option of the container hls here; "
      "did you mean \"hls_time\"?"}},
    {"PlaylistFlagThatIsRefused",
     output_with("url: x.m3u8, options: {hls_flags: +single_file}"),
     {"f.yaml:1:78: feeds.a.outputs.o.options.hls_flags: has the flag single_file, which is "
      "refused: every segment is a file of its own; remove it"}},
    {"IndependentSegmentsOfACopy",
     feed_with(", encodes: {m: {video: copy}}, outputs: {o: {url: x.m3u8, options: {hls_flags: "
               "+independent_segments}}}"),
     {"f.yaml:1:107: feeds.a.outputs.o.options.hls_flags: has the flag independent_segments, which "
      "can be kept only if keyframes are never further apart than a time that is known; take an "
      "encode that encodes and has a gop, or remove the flag"}},
    {"IndependentSegmentsWithoutAGop",
     output_with("url: x.m3u8, options: {hls_flags: +independent_segments}"),
     {"f.yaml:1:78: feeds.a.outputs.o.options.hls_flags: has the flag independent_segments, which "
      "can be kept only if keyframes are never further apart than a time that is known; take an "
      "encode that encodes and has a gop, or remove the flag"}},
    {"PlaylistFlagMisspelt",
     output_with("url: x.m3u8, options: {hls_flags: program_datetime}"),
     {"f.yaml:1:78: feeds.a.outputs.o.options.hls_flags: has a flag that is none; the flags are "
      "delete_segments, independent_segments and program_date_time"}},
    {"PlaylistValueThatIsNone",
     output_with("url: x.m3u8, options: {hls_segment_type: ts}"),
     {"f.yaml:1:85: feeds.a.outputs.o.options.hls_segment_type: is not mpegts or fmp4"}},
    {"PlaylistOnAServer",
     output_with("url: 'http://h/x.m3u8'"),
     {"f.yaml:1:49: feeds.a.outputs.o.url: is a playlist on a server; write it into a folder that "
      "a server serves"}},
    {"NetworkOptionOfAFile",
     output_with("url: x.mp4, options: {pkt_size: 1316}"),
     {"f.yaml:1:66: feeds.a.outputs.o.options.pkt_size: is not an option of the container mp4 "
      "here"}},
    {"UnknownAllowedNames",
     input_with(", protocols: [default, htttp], formats: matrosca, decoders: [h264, h265x]"),
     {"f.yaml:1:50: feeds.a.input.protocols[1]: \"htttp\" is not a protocol that this FFmpeg reads "
      "from; did you mean \"http\"?",
      "f.yaml:1:67: feeds.a.input.formats: \"matrosca\" is not a demuxer of this FFmpeg; did you "
      "mean \"matroska\"?",
      "f.yaml:1:94: feeds.a.input.decoders[1]: \"h265x\" is not a decoder of this FFmpeg; did "
      "you mean \"h261\"?"}},
    {"ProtocolsTwice",
     input_with(", protocols: file, options: {protocol_whitelist: file}"),
     {"f.yaml:1:56: feeds.a.input.options.protocol_whitelist: says what input.protocols says too; "
      "keep input.protocols"}},
    {"UnknownScheme",
     "feeds: {a: {input: {url: 'htttp://h/'}}}\n",
     {"f.yaml:1:26: feeds.a.input.url: begins with \"htttp:\", which this FFmpeg cannot read "
      "from; did you mean \"http\"?"}},
    {"UnknownSchemeOfAnOutput",
     output_with("url: 'nul:'"),
     {"f.yaml:1:49: feeds.a.outputs.o.url: begins with \"nul:\", which this FFmpeg cannot "
      "write to; perhaps null"}},
    {"TimeFieldThatNoNameCanHave",
     output_with("url: 'rec/%Q.mp4'"),
     {"f.yaml:1:49: feeds.a.outputs.o.url: has a wrong name: %Q is no time field a file name can "
      "have; "
      "use %Y, %y, %m, %d, %H, %I, %M, %S, %j, %V, %u, %s, %F, %T, %R, %z, %%"}},
    {"LonePercentSign",
     output_with("url: '100%', format: mpegts"),
     {"f.yaml:1:49: feeds.a.outputs.o.url: has a wrong name: a lone % is no time field a file name "
      "can have; "
      "use %Y, %y, %m, %d, %H, %I, %M, %S, %j, %V, %u, %s, %F, %T, %R, %z, %%"}},
    {"SegmentsThatShareAName",
     output_with("url: '%Y-%m-%d.mp4', segment: 90s"),
     {"f.yaml:1:49: feeds.a.outputs.o.url: gives the same name to segments that begin within 1d; "
      "add a finer part of the time, such as %M"}},
    {"SlicesOutOfRange",
     feed_with(", slices: 17"),
     {"f.yaml:1:38: feeds.a.slices: must be from 1 to 16, not \"17\""}},
    {"SlicesOfAnotherKind",
     feed_with(", slices: some"),
     {"f.yaml:1:38: feeds.a.slices: must be auto or a whole number, from 1 to 16, not \"some\""}},
};
INSTANTIATE_TEST_SUITE_P(Names, WrongConfigTest, ::testing::ValuesIn(kNames), name_of);

TEST(NameProblemsTest, ARefusedValueOfAnEncoderOptionIsNamed) {
  const std::vector<std::string> problems =
      test::problems_of(encode_with("{name: libx264, options: {crf: low}}"));
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_THAT(problems[0],
              ::testing::StartsWith("f.yaml:1:85: feeds.a.encodes.m.video.codec.options.crf: is "
                                    "refused by libx264: "));
}

TEST(NameProblemsTest, WhatVariablesHoldIsNotShown) {
  const LoadOptions options = test::with_environment({{"V", "s3cr3t"}});
  for (const std::string& text :
       {encode_with("'${V}'"), encode_with("{name: libx264, options: {crf: '${V}', '${V}': 1}}"),
        output_with("url: '/srv/${V}/%Q.mp4'"), output_with("url: '/srv/${V}', segment: 1m"),
        output_with("url: x, format: '${V}'"), input_with(", format: '${V}'")}) {
    const std::vector<std::string> problems = test::problems_of(text, options);
    for (const std::string& problem : problems) {
      EXPECT_THAT(problem, ::testing::Not(::testing::HasSubstr("s3cr3t")));
    }
  }
}

TEST(NameProblemsTest, NamesThatFfmpegKnowsAreRight) {
  for (const std::string& text :
       {encode_with("[h264_mf, libx264]"),
        encode_with("{name: libx264, options: {crf: 20, threads: 2}}"),
        input_with(", format: 'mov,mp4', options: {probesize: 5000000, threads: 1}"),
        input_with(", format: v4l2, options: {video_size: 640x480}"),
        input_with(
            ", protocols: [default, rtsp, tls], formats: all, decoders: [default, h264, aac]"),
        input_with(", options: {protocol_whitelist: 'file,udp,rtp'}"),
        std::string("feeds: {a: {input: {url: 'lavfi:testsrc2', options: {any: 1}}}}\n"),
        std::string("feeds: {a: {input: {url: 'crypto+file:x.ts', options: {key: ab}}}}\n"),
        output_with("url: x.mp4, options: {movflags: +faststart, truncate: 0}"),
        output_with("url: 'srt://h:1', options: {latency: 200000, mpegts_flags: resend_headers}"),
        output_with("url: x.m3u8, options: {hls_time: 2, hls_flags: +program_date_time}"),
        feed_with(", encodes: {m: {video: {codec: libx264, gop: 2s}}}, outputs: {o: {url: x.m3u8, "
                  "options: {hls_flags: +independent_segments}}}"),
        std::string(
            "feeds: {a: {input: {url: 'udp://:5000'}}, b: {input: {url: 'udp://@239.0.0.1:5000'}}, "
            "c: {input: {url: 'srt://:9000?mode=listener'}}, d: {input: {url: 'tcp://:9?listen'}}, "
            "e: {input: {url: 'rtmp:///live', options: {listen: 1}}}, f: {input: {url: "
            "'udp:1.2.3.4:5000'}}, g: {input: {url: 'rtsp://u:p%2Fw@[::1]:8554/x'}}, "
            "h: {input: {url: 'http://h'}}, i: {input: {url: 'udp://?localport=5000'}}}\n"),
        output_with("url: 'srt://:9000?mode=listener', format: mpegts"),
        output_with("url: 'tcp://:9?listen', format: mpegts"),
        output_with("url: '%H%M.mp4', segment: 1m"),
        output_with("url: '%s.ts', segment: 100ms"),
        feed_with(", slices: auto"),
        feed_with(", slices: 16"),
        feed_with(", analyse: false, encodes: {m: {video: copy}}"),
        feed_with(", analyse: true, encodes: {c: {video: copy}, m: {convert: {format: gray}}, n: "
                  "{convert: {format: bgra}}}"),
        "defaults: {analyse: true}\n" +
            feed_with(", analyse: false, encodes: {m: {video: copy}}")}) {
    EXPECT_THAT(test::problems_of(text), ::testing::IsEmpty()) << text;
  }
}

TEST(NameProblemsTest, NamesThatAreNotKnownYetAreNotJudged) {
  LoadOptions options = test::with_environment({});
  options.require_environment = false;
  EXPECT_THAT(test::problems_of(encode_with("['${CODEC}', h264_mf]"), options),
              ::testing::IsEmpty());
  EXPECT_THAT(test::problems_of(encode_with("{name: libx264, options: {crf: '${CRF}'}}"), options),
              ::testing::IsEmpty());
  EXPECT_THAT(test::problems_of(output_with("url: x, format: '${FORMAT}'"), options),
              ::testing::IsEmpty());
}

}  // namespace
}  // namespace framelane
