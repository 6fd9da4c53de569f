#include <gmock/gmock.h>

#include "tests/config/support.hpp"

namespace framelane {
namespace {

struct Wrong {
  std::string name;  ///< of the test
  std::string text;
  std::vector<std::string> problems;
};

void PrintTo(const Wrong& wrong, std::ostream* out) { *out << wrong.text; }

/// A feed that is right, with something added in its braces; begins in line 1, column 1.
std::string feed_with(const std::string& rest) {
  return "feeds: {a: {input: {url: x}" + rest + "}}\n";
}
/// An input with something added; the added text begins in column 27.
std::string input_with(const std::string& rest) {
  return "feeds: {a: {input: {url: x" + rest + "}}}\n";
}

class WrongConfigTest : public testing::TestWithParam<Wrong> {};

TEST_P(WrongConfigTest, IsReportedWithItsPlace) {
  EXPECT_THAT(test::problems_of(GetParam().text), testing::ElementsAreArray(GetParam().problems));
}

std::string name_of(const testing::TestParamInfo<Wrong>& info) { return info.param.name; }

const std::vector<Wrong> kSyntax{
    {"Empty", "", {"f.yaml:1:1: the file is empty; it needs at least feeds"}},
    {"OnlyComments", "# nothing\n", {"f.yaml:1:1: the file is empty; it needs at least feeds"}},
    {"NoMap", "- a\n", {"f.yaml:1:1: the file must be a map of keys: feeds and others"}},
    {"TabIndents", "feeds:\n\ta: {}\n", {"f.yaml:2:3: a tab cannot indent; use spaces"}},
    {"TabIndentsNextLine",
     "log: {}\nfeeds: 1\n\ta: {}\n",
     {"f.yaml:3:1: a tab cannot indent; use spaces"}},
    {"BracketIsNotClosed",
     "feeds: [a\n",
     {"f.yaml:2:1: a list's '[' is not closed by a ']' before this"}},
    {"BraceIsNotClosed",
     "feeds: {a: b\n",
     {"f.yaml:2:1: a map's '{' is not closed by a '}' before this"}},
    {"QuoteIsNotClosed", "feeds: {}\nlog: \"x\n", {"f.yaml:2:6: this quoted text is never closed"}},
    {"SingleQuoteIsNotClosed", "log: 'it''s\n", {"f.yaml:1:6: this quoted text is never closed"}},
    {"ColonInPlainText",
     "log: a: b\n",
     {"f.yaml:1:7: this ':' is not expected here; check the indentation, or put the text in "
      "quotes"}},
    {"WrongIndentation",
     "log:\n  level: info\n format: text\n",
     {"f.yaml:3:2: this does not continue the map above; check the indentation, or put the text "
      "in quotes"}},
    {"PlainTextBeginsWithAt",
     "log: @x\n",
     {"f.yaml:1:6: text cannot begin with this character; put it in quotes"}},
    {"UnknownAlias", "log: *x\n", {"f.yaml:1:6: no anchor of this name stands before this"}},
    {"SecondDocument",
     "feeds: {a: {input: {url: x}}}\n---\nlog: {}\n",
     {"f.yaml:2:1: a second document starts here; the configuration is one map of keys"}},
    {"NotUtf8", "# caf\xe9\n", {"f.yaml:1:6: this byte is not UTF-8 text; save the file as UTF-8"}},
    {"ControlCharacter",
     "log: x\x04\n",
     {"f.yaml:1:7: a control character cannot stand here; remove it"}},
    {"DuplicateKey",
     "log: {}\nfeeds: {a: {input: {url: x}}}\nlog: {}\n",
     {"f.yaml:3:1: log: is given twice; the first is in line 1"}},
    {"DuplicateFeed",
     "feeds:\n  a: {input: {url: x}}\n  a: {input: {url: y}}\n",
     {"f.yaml:3:3: feeds.a: is given twice; the first is in line 2"}},
    {"MergeKey",
     "defaults: &d {}\nfeeds: {a: {<<: *d, input: {url: x}}}\n",
     {"f.yaml:2:13: feeds.a.<<: merge keys are not supported; put what several feeds share under "
      "defaults or in a profile"}},
    {"Tag",
     feed_with(", ring: !!int 3"),
     {"f.yaml:1:36: feeds.a.ring: has a YAML tag; remove it: the key says what the value means"}},
    {"KeyIsAList",
     "? [a]\n: 1\nfeeds: {a: {input: {url: x}}}\n",
     {"f.yaml:1:3: a key must be plain text"}},
};
INSTANTIATE_TEST_SUITE_P(Syntax, WrongConfigTest, testing::ValuesIn(kSyntax), name_of);

const std::vector<Wrong> kTypes{
    {"FeedsMissing",
     "log: {}\n",
     {"f.yaml:1:1: feeds is missing; name at least one feed under it"}},
    {"FeedsEmpty", "feeds: {}\n", {"f.yaml:1:8: feeds: is empty; name at least one feed"}},
    {"NullSection",
     "log:\nfeeds: {a: {input: {url: x}}}\n",
     {"f.yaml:1:1: log: has no value (null removes what is inherited, and here nothing is); give "
      "it one, or remove the key"}},
    {"NullFeed",
     "feeds:\n  a:\n",
     {"f.yaml:2:3: feeds.a: has no value; write {} for one that only has the defaults"}},
    {"NullRemovesNothing",
     feed_with(", outputs: {recrod: null}"),
     {"f.yaml:1:40: feeds.a.outputs.recrod: has no value (null removes what is inherited, and here "
      "nothing is); give it one, or remove the key"}},
    {"NullInDefaults",
     "defaults: {ring: ~}\nfeeds: {a: {input: {url: x}}}\n",
     {"f.yaml:1:12: defaults.ring: has no value (null removes what is inherited, and here nothing "
      "is); give it one, or remove the key"}},
    {"UnknownKey",
     input_with(", reconect: {}"),
     {"f.yaml:1:29: feeds.a.input.reconect: is not a known key; did you mean \"reconnect\"?"}},
    {"UnknownKeyFarFromAll",
     "log: {destination: x}\nfeeds: {a: {input: {url: x}}}\n",
     {"f.yaml:1:7: log.destination: is not a known key; known here: level, format"}},
    {"ScalarForMap",
     "feeds: {a: {input: rtsp://10.0.0.4/}}\n",
     {"f.yaml:1:20: feeds.a.input: must be a map with keys such as url, format, options, timeout, "
      "reconnect, decoder, loop, pace, color, pixel_format, size, rate, pitch, timestamps, not "
      "\"rtsp://10.0.0.4/\""}},
    {"MapForScalar",
     feed_with(", ring: {}"),
     {"f.yaml:1:36: feeds.a.ring: must be a whole number, from 1 to 256, not a map"}},
    {"ListForScalar",
     feed_with(", on_full: [drop]"),
     {"f.yaml:1:39: feeds.a.on_full: must be one of auto, block, drop, not a list"}},
    {"OctalNumber",
     feed_with(", ring: 010"),
     {"f.yaml:1:36: feeds.a.ring: must be a whole number, from 1 to 256, not \"010\""}},
    {"NoIsNotFalse",
     input_with(", loop: no"),
     {"f.yaml:1:35: feeds.a.input.loop: must be true or false, not \"no\""}},
    {"OutOfRange",
     feed_with(", ring: 257, lanes: 0"),
     {"f.yaml:1:36: feeds.a.ring: must be from 1 to 256, not \"257\"",
      "f.yaml:1:48: feeds.a.lanes: must be from 1 to 64, not \"0\""}},
    {"DurationWithoutUnit",
     input_with(", timeout: 10"),
     {"f.yaml:1:38: feeds.a.input.timeout: must be a duration such as 500ms, 10s, 5m, 1h or 7d, "
      "from 100ms to 1h, not \"10\""}},
    {"UnknownWord",
     input_with(", pace: realtme"),
     {"f.yaml:1:35: feeds.a.input.pace: must be one of asap, realtime, not \"realtme\"; did you "
      "mean \"realtime\"?"}},
    {"EmptyUrl",
     "feeds: {a: {input: {url: ''}}}\n",
     {"f.yaml:1:26: feeds.a.input.url: must be text that is not empty"}},
    {"FeedName",
     "feeds: {Gate: {input: {url: x}}}\n",
     {"f.yaml:1:9: feeds.Gate: must be a name of at most 63 of a-z, 0-9, _ and -, beginning with a "
      "letter or digit"}},
    {"OutputName",
     feed_with(", outputs: {a.b: {url: x}}"),
     {"f.yaml:1:40: feeds.a.outputs.a.b: must be a name of at most 63 of a-z, 0-9, _ and -, "
      "beginning with a letter or digit"}},
    {"OptionIsAMap",
     input_with(", options: {a: {b: c}}"),
     {"f.yaml:1:42: feeds.a.input.options.a: must be text or a number, not a map"}},
    {"NotInThisVersion",
     "watchdog: {max_abandoned: 3}\nadmin: {tls: {}}\nfeeds: {a: {input: {url: x}, limits: 1, "
     "recorder: {}}}\n",
     {"f.yaml:1:1: watchdog: is not supported by this version; remove the key",
      "f.yaml:2:9: admin.tls: is not supported by this version; remove the key",
      "f.yaml:3:30: feeds.a.limits: is not supported by this version; remove the key",
      "f.yaml:3:41: feeds.a.recorder: is not supported by this version; remove the key"}},
    {"UnsetVariable",
     feed_with(", ring: '${RING}'"),
     {"f.yaml:1:36: feeds.a.ring: the environment variable RING is not set; set it, or write "
      "${RING:-default}"}},
    {"OutputVariableInAnInput",
     "feeds: {a: {input: {url: '${output}'}}}\n",
     {"f.yaml:1:26: feeds.a.input.url: ${output} has a value only inside outputs"}},
    {"FeedVariableOutsideFeeds",
     "log: {level: '${feed}'}\nfeeds: {a: {input: {url: x}}}\n",
     {"f.yaml:1:14: log.level: ${feed} has a value only inside feeds"}},
};
INSTANTIATE_TEST_SUITE_P(Types, WrongConfigTest, testing::ValuesIn(kTypes), name_of);

const std::vector<Wrong> kFeeds{
    {"UrlMissing",
     "feeds:\n  a: {ring: 2}\n",
     {"f.yaml:2:3: feeds.a.input.url: is missing; give the feed's source, for example "
      "rtsp://10.0.0.4/stream1"}},
    {"UnknownProfile",
     "profiles: {sub: {}}\n" + feed_with(", profile: sup"),
     {"f.yaml:2:39: feeds.a.profile: there is no profile \"sup\"; there are: sub"}},
    {"ProfileInDefaults",
     "defaults: {profile: x}\nfeeds: {a: {input: {url: x}}}\n",
     {"f.yaml:1:12: defaults.profile: is not a known key; known here: input, encodes, outputs, "
      "ring, lanes, slices, on_full, analyse"}},
    {"BackoffUpsideDown",
     input_with(", reconnect: {first: 5s, max: 1s}"),
     {"f.yaml:1:48: feeds.a.input.reconnect.first: must not be longer than max, which is 1s"}},
    {"BackoffMaxBelowBuiltInFirst",
     input_with(", reconnect: {max: 500ms}"),
     {"f.yaml:1:46: feeds.a.input.reconnect.max: must not be shorter than first, which is 1s"}},
    {"LoopOnANetworkSource",
     "feeds: {a: {input: {url: 'rtsp://h/', loop: true}}}\n",
     {"f.yaml:1:45: feeds.a.input.loop: works on files alone, and the url of feed \"a\" names "
      "none; remove it"}},
    {"RawWithoutItsShape",
     input_with(", format: rawvideo"),
     {"f.yaml:1:13: feeds.a.input.pixel_format: is missing; raw video has no header that says it; "
      "for example bgra",
      "f.yaml:1:13: feeds.a.input.rate: is missing; raw video has no header that says it; for "
      "example 30",
      "f.yaml:1:13: feeds.a.input.size: is missing; raw video has no header that says it; for "
      "example 1920x1080"}},
    {"RawKeysWithoutRaw",
     input_with(", size: 4x4"),
     {"f.yaml:1:29: feeds.a.input.size: is for raw video alone; remove it, or set format: "
      "rawvideo"}},
    {"RawFormatIsNot8Bit",
     input_with(", format: rawvideo, size: 4x4, rate: 1, pixel_format: p010le"),
     {"f.yaml:1:81: feeds.a.input.pixel_format: must be one of bgra, bgr0, rgba, rgb0, argb, 0rgb, "
      "abgr, 0bgr, bgr24, rgb24, yuv420p, yuvj420p, nv12, yuv422p, yuvj422p, yuyv422, uyvy422, "
      "yuv444p, yuvj444p, gray, not \"p010le\""}},
    {"RawSizeTooLarge",
     input_with(", format: rawvideo, size: 16385x1, rate: 1, pixel_format: gray"),
     {"f.yaml:1:53: feeds.a.input.size: must be a size such as 1920x1080, at most 16384x16384, not "
      "\"16385x1\""}},
    {"PitchTooSmall",
     input_with(", format: rawvideo, size: 100x4, rate: 1, pixel_format: bgra, pitch: 399"),
     {"f.yaml:1:96: feeds.a.input.pitch: must be at least 400, the bytes of 100 pixels of bgra"}},
    {"CopyOfRawVideo",
     input_with(", format: rawvideo, size: 4x4, rate: 1, pixel_format: bgra}, encodes: {m: {video: "
                "copy}"),
     {"f.yaml:1:109: feeds.a.encodes.m.video: feed \"a\" has raw video, which must be encoded; "
      "give "
      "a codec, or remove this encode from the feed with null"}},
    {"RawConversionThatCannotBe",
     input_with(", format: rawvideo, size: 4x4, rate: 1, pixel_format: nv12}, encodes: {m: "
                "{convert: {format: yuv444p}}"),
     {"f.yaml:1:111: feeds.a.encodes.m.convert: cannot be done for feed \"a\": converting nv12 to "
      "yuv444p would raise the chroma resolution"}},
    {"ConvertWithCopy",
     feed_with(", encodes: {m: {video: copy, convert: {range: full}}}"),
     {"f.yaml:1:57: feeds.a.encodes.m.convert: has no effect with video: copy; remove one of the "
      "two"}},
    {"NoCodec",
     feed_with(", encodes: {m: {video: {codec: []}}}"),
     {"f.yaml:1:59: feeds.a.encodes.m.video.codec: is empty; name at least one encoder, such as "
      "libx264"}},
    {"CodecWithoutName",
     feed_with(", encodes: {m: {video: {codec: [{options: {a: 1}}]}}}"),
     {"f.yaml:1:60: feeds.a.encodes.m.video.codec[0].name: is missing; give FFmpeg's name of the "
      "encoder, such as libx264"}},
    {"OutputWithoutUrl",
     feed_with(", outputs: {o: {queue: 3}}"),
     {"f.yaml:1:40: feeds.a.outputs.o.url: is missing; say where to write; null: discards"}},
    {"FromUnknownEncode",
     feed_with(", encodes: {m: {}}, outputs: {o: {from: main, url: x.ts}}"),
     {"f.yaml:1:68: feeds.a.outputs.o.from: feed \"a\" has no encode \"main\"; it has: m"}},
    {"FromRemovedEncode",
     "defaults:\n  encodes: {m: {}, n: {}}\n  outputs:\n    o: {from: m, url: 'null:'}\n" +
         feed_with(", encodes: {m: null}"),
     {"f.yaml:4:15: defaults.outputs.o.from: feed \"a\" has no encode \"m\"; it has: n"}},
    {"OutputUrlIsEmpty",
     feed_with(", outputs: {o: {url: ''}}"),
     {"f.yaml:1:49: feeds.a.outputs.o.url: must be text that is not empty"}},
    {"AnalyseOfPackets",
     feed_with(", analyse: true, encodes: {m: {video: copy}, n: {video: copy}}"),
     {"f.yaml:1:39: feeds.a.analyse: needs frames, and every encode of feed \"a\" copies packets, "
      "so that nothing is decoded; set analyse: false for it, or give an encode a codec"}},
    {"AnalyseOfPacketsInTheDefaults",
     "defaults: {analyse: true}\n" + feed_with(", encodes: {m: {video: copy}}"),
     {"f.yaml:1:21: defaults.analyse: needs frames, and every encode of feed \"a\" copies packets, "
      "so that nothing is decoded; set analyse: false for it, or give an encode a codec"}},
    {"AnalyseOfRgb",
     feed_with(", analyse: true, encodes: {c: {video: copy}, m: {convert: {format: bgra}}, n: {}}"),
     {"f.yaml:1:39: feeds.a.analyse: measures luma, and encode \"m\" of feed \"a\", the first that "
      "decodes, has convert.format bgra, which has none; give it a YUV format, or set analyse: "
      "false"}},
    {"AnalyseOfAnotherKind",
     feed_with(", analyse: 1"),
     {"f.yaml:1:39: feeds.a.analyse: must be true or false, not \"1\""}},
    {"LoopInTheDefaults",
     "defaults: {input: {loop: true}}\nfeeds: {a: {input: {url: 'rtsp://h/'}}}\n",
     {"f.yaml:1:26: defaults.input.loop: works on files alone, and the url of feed \"a\" names "
      "none; remove it"}},
    {"SamePlaceAsARelativeAndAnAbsolutePath",
     feed_with(", outputs: {o: {url: x.mp4}, p: {url: '" +
               (std::filesystem::current_path() / "y/../x.mp4").string() + "'}}"),
     {"f.yaml:1:66: feeds.a.outputs.p.url: output \"p\" of feed \"a\" would write to the same "
      "place as output \"o\" of feed \"a\"; put ${feed} or ${output} into the url"}},
    {"SegmentWithoutTime",
     feed_with(", outputs: {o: {url: 100%%.mp4, segment: 1m}}"),
     {"f.yaml:1:49: feeds.a.outputs.o.url: needs the time in it, so that every segment has a name "
      "of its own; for example /srv/rec/${feed}/%Y-%m-%d/%H%M%S.mp4"}},
    {"SegmentOfAPlaylist",
     feed_with(", outputs: {o: {url: '%H.m3u8', segment: 1m}}"),
     {"f.yaml:1:69: feeds.a.outputs.o.segment: works on plain files alone, and this output writes "
      "none; remove it"}},
    {"SegmentOnTheNetwork",
     feed_with(", outputs: {o: {url: 'srt://h:1/%H', segment: 1m}}"),
     {"f.yaml:1:74: feeds.a.outputs.o.segment: works on plain files alone, and this output writes "
      "none; remove it"}},
    {"KeepWithoutSegment",
     feed_with(", outputs: {o: {url: x.mp4, keep: {age: 1d}}}"),
     {"f.yaml:1:56: feeds.a.outputs.o.keep: deletes old segments, and there are none without "
      "segment; set it, or remove this"}},
    {"TwoFeedsOneFile",
     "defaults: {outputs: {o: {url: /srv/x.mp4}}}\n"
     "feeds: {a: {input: {url: x}}, b: {input: {url: y}}}\n",
     {"f.yaml:1:31: defaults.outputs.o.url: output \"o\" of feed \"b\" would write to the same "
      "place "
      "as output \"o\" of feed \"a\"; put ${feed} or ${output} into the url"}},
    {"FeedsThatCouldDeleteEachOthersFiles",
     "defaults: {outputs: {o: {url: '/r/${feed}%s.ts', segment: 1m, keep: {age: 1d}}}}\n"
     "feeds: {cam: {input: {url: x}}, cam1: {input: {url: y}}, dog: {input: {url: z}}}\n",
     {"f.yaml:1:31: defaults.outputs.o.url: can give the same names as output \"o\" of feed "
      "\"cam\", so that keep of output \"o\" of feed \"cam1\" would delete files of output \"o\" "
      "of feed \"cam\"; put them into folders of their own, for example with ${feed}/"}},
    {"AnOutputWhoseFilesAnotherCouldDelete",
     feed_with(", outputs: {o: {url: '/r/%s.ts', segment: 1m, keep: {size: 1G}}, "
               "p: {url: /r/1.ts}}"),
     {"f.yaml:1:102: feeds.a.outputs.p.url: can give the same names as output \"o\" of feed \"a\", "
      "so that keep of output \"o\" of feed \"a\" would delete files of output \"p\" of feed "
      "\"a\"; put them into folders of their own, for example with ${feed}/"}},
    {"OneFileSpelledTwoWays",
     feed_with(", outputs: {o: {url: /srv/x.mp4}, p: {url: 'file:/srv/./y/../x.mp4'}}"),
     {"f.yaml:1:71: feeds.a.outputs.p.url: output \"p\" of feed \"a\" would write to the same "
      "place "
      "as output \"o\" of feed \"a\"; put ${feed} or ${output} into the url"}},
};
INSTANTIATE_TEST_SUITE_P(Feeds, WrongConfigTest, testing::ValuesIn(kFeeds), name_of);

/// An encode "m" with that codec; the codec begins in column 59.
std::string codec(const std::string& codec) {
  return feed_with(", encodes: {m: {video: {codec: " + codec + "}}}");
}
/// An output "o" with that in its braces, which begins in column 44.
std::string output_with(const std::string& keys) {
  return feed_with(", outputs: {o: {" + keys + "}}");
}

const std::vector<Wrong> kNames{
    {"UnknownEncoder",
     codec("libx265k"),
     {"f.yaml:1:59: feeds.a.encodes.m.video.codec: \"libx265k\" is no video encoder of the FFmpeg "
      "here; did you mean \"libx265\"?"}},
    {"EncoderByHalfItsName",
     codec("{name: x264}"),
     {"f.yaml:1:66: feeds.a.encodes.m.video.codec.name: \"x264\" is no video encoder of the "
      "FFmpeg here; perhaps libx264, libx264rgb"}},
    {"CodecForEncoder",
     codec("[ffv1, theora]"),
     {"f.yaml:1:66: feeds.a.encodes.m.video.codec[1]: \"theora\" is a codec and no encoder; name "
      "one of its encoders: libtheora"}},
    {"EncoderOfSound",
     codec("pcm_s16le"),
     {"f.yaml:1:59: feeds.a.encodes.m.video.codec: \"pcm_s16le\" is no video encoder of the FFmpeg "
      "here; framelane devices lists them"}},
    {"OnlyEncodersThatAreNotBuiltIn",
     codec("[h264_mf, hevc_mf]"),
     {"f.yaml:1:60: feeds.a.encodes.m.video.codec[0]: \"h264_mf\" is an encoder that the FFmpeg "
      "here was built without, and no other is named; add one",
      "f.yaml:1:69: feeds.a.encodes.m.video.codec[1]: \"hevc_mf\" is an encoder that the FFmpeg "
      "here was built without, and no other is named; add one"}},
    {"UnknownEncoderInAProfileNobodyUses",
     "profiles: {p: {encodes: {m: {video: {codec: libx265k}}}}}\n" + feed_with(""),
     {"f.yaml:1:45: profiles.p.encodes.m.video.codec: \"libx265k\" is no video encoder of the "
      "FFmpeg here; did you mean \"libx265\"?"}},
    {"UnknownEncoderOption",
     codec("{name: libx264, options: {presett: fast}}"),
     {"f.yaml:1:85: feeds.a.encodes.m.video.codec.options.presett: is no option of libx264; did "
      "you mean \"preset\"?"}},
    {"EncoderOptionFarFromAll",
     codec("{name: libx264, options: {quality_of_life: 1}}"),
     {"f.yaml:1:85: feeds.a.encodes.m.video.codec.options.quality_of_life: is no option of "
      "libx264; ffmpeg -h encoder=libx264 lists them"}},
    {"UnknownDemuxer",
     input_with(", format: matrosca"),
     {"f.yaml:1:37: feeds.a.input.format: is no demuxer of the FFmpeg here; did you mean "
      "\"matroska\"?"}},
    {"UnknownMuxer",
     output_with("url: x, format: matrosca"),
     {"f.yaml:1:60: feeds.a.outputs.o.format: is no container of the FFmpeg here; did you mean "
      "\"matroska\"?"}},
    {"EndingThatTellsNothing",
     output_with("url: x.mp5"),
     {"f.yaml:1:49: feeds.a.outputs.o.url: has no ending that tells its container; use .mp4, .mkv, "
      ".ts, .m3u8 or another known one, or set format"}},
    {"UnknownInputOption",
     input_with(", options: {rtsp_transprot: tcp}"),
     {"f.yaml:1:39: feeds.a.input.options.rtsp_transprot: is no option of FFmpeg's protocols, "
      "demuxers and decoders; did you mean \"rtsp_transport\"?"}},
    {"OptionOfRawVideo",
     input_with(
         ", format: rawvideo, size: 4x4, rate: 1, pixel_format: gray, options: {threads: 1}"),
     {"f.yaml:1:97: feeds.a.input.options.threads: has no effect on raw video, which is not read "
      "through FFmpeg; remove it"}},
    {"UnknownMuxerOption",
     output_with("url: x.mp4, options: {movflag: faststart}"),
     {"f.yaml:1:66: feeds.a.outputs.o.options.movflag: is no option of the container mp4 here; "
      "did you mean \"movflags\"?"}},
    {"NetworkOptionOfAFile",
     output_with("url: x.mp4, options: {pkt_size: 1316}"),
     {"f.yaml:1:66: feeds.a.outputs.o.options.pkt_size: is no option of the container mp4 here"}},
    {"UnknownScheme",
     "feeds: {a: {input: {url: 'htttp://h/'}}}\n",
     {"f.yaml:1:26: feeds.a.input.url: begins with \"htttp:\", which the FFmpeg here cannot read "
      "from; did you mean \"http\"?"}},
    {"UnknownSchemeOfAnOutput",
     output_with("url: 'nul:'"),
     {"f.yaml:1:49: feeds.a.outputs.o.url: begins with \"nul:\", which the FFmpeg here cannot "
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
      "put a finer part of the time into it, %M"}},
    {"SlicesOutOfRange",
     feed_with(", slices: 17"),
     {"f.yaml:1:38: feeds.a.slices: must be from 1 to 16, not \"17\""}},
    {"SlicesOfAnotherKind",
     feed_with(", slices: some"),
     {"f.yaml:1:38: feeds.a.slices: must be auto or a whole number, from 1 to 16, not \"some\""}},
};
INSTANTIATE_TEST_SUITE_P(Names, WrongConfigTest, testing::ValuesIn(kNames), name_of);

TEST(ProblemsTest, ARefusedValueOfAnEncoderOptionIsNamed) {
  const std::vector<std::string> problems =
      test::problems_of(codec("{name: libx264, options: {crf: low}}"));
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_THAT(problems[0],
              testing::StartsWith("f.yaml:1:85: feeds.a.encodes.m.video.codec.options.crf: is "
                                  "refused by libx264: "));
}

TEST(ProblemsTest, WhatVariablesHoldIsNotShown) {
  const LoadOptions options = test::with_environment({{"V", "s3cr3t"}});
  for (const std::string& text :
       {codec("'${V}'"), codec("{name: libx264, options: {crf: '${V}', '${V}': 1}}"),
        output_with("url: '/srv/${V}/%Q.mp4'"), output_with("url: '/srv/${V}', segment: 1m"),
        output_with("url: x, format: '${V}'"), input_with(", format: '${V}'")}) {
    const std::vector<std::string> problems = test::problems_of(text, options);
    for (const std::string& problem : problems) {
      EXPECT_THAT(problem, testing::Not(testing::HasSubstr("s3cr3t")));
    }
  }
}

TEST(ProblemsTest, NamesThatFfmpegKnowsAreRight) {
  for (const std::string& text :
       {codec("[h264_mf, libx264]"), codec("{name: libx264, options: {crf: 20, threads: 2}}"),
        input_with(", format: 'mov,mp4', options: {probesize: 5000000, threads: 1}"),
        input_with(", format: v4l2, options: {video_size: 640x480}"),
        std::string("feeds: {a: {input: {url: 'lavfi:testsrc2', options: {any: 1}}}}\n"),
        std::string("feeds: {a: {input: {url: 'crypto+file:x.ts', options: {key: ab}}}}\n"),
        output_with("url: x.mp4, options: {movflags: +faststart, truncate: 0}"),
        output_with("url: 'srt://h:1', options: {latency: 200000, mpegts_flags: resend_headers}"),
        output_with("url: x.m3u8, options: {hls_time: 2}"),
        output_with("url: '%H%M.mp4', segment: 1m"), output_with("url: '%s.ts', segment: 100ms"),
        feed_with(", slices: auto"), feed_with(", slices: 16"),
        feed_with(", analyse: false, encodes: {m: {video: copy}}"),
        feed_with(", analyse: true, encodes: {c: {video: copy}, m: {convert: {format: gray}}, n: "
                  "{convert: {format: bgra}}}"),
        "defaults: {analyse: true}\n" +
            feed_with(", analyse: false, encodes: {m: {video: copy}}")}) {
    EXPECT_THAT(test::problems_of(text), testing::IsEmpty()) << text;
  }
}

TEST(ProblemsTest, NamesThatAreNotKnownYetAreNotJudged) {
  LoadOptions options = test::with_environment({});
  options.require_environment = false;
  EXPECT_THAT(test::problems_of(codec("['${CODEC}', h264_mf]"), options), testing::IsEmpty());
  EXPECT_THAT(test::problems_of(codec("{name: libx264, options: {crf: '${CRF}'}}"), options),
              testing::IsEmpty());
  EXPECT_THAT(test::problems_of(output_with("url: x, format: '${FORMAT}'"), options),
              testing::IsEmpty());
}

TEST(ProblemsTest, AllComeAtOnceInFileOrder) {
  EXPECT_THAT(
      test::problems_of("feeds:\n  b: {rings: 1, input: {url: x}}\n"
                        "  a: {input: {url: x, url: y}}\ndevice: gpu\nlog: {level: loud}\n"),
      testing::ElementsAre(
          "f.yaml:2:7: feeds.b.rings: is not a known key; did you mean \"ring\"?",
          "f.yaml:3:23: feeds.a.input.url: is given twice; the first is in line 3",
          "f.yaml:4:9: device: must be auto, cpu, cuda or cuda:N, not \"gpu\"",
          "f.yaml:5:14: log.level: must be one of trace, debug, info, warn, error, not "
          "\"loud\""));
}

TEST(ProblemsTest, DiscardedOutputsDoNotCollide) {
  EXPECT_THAT(test::problems_of(feed_with(", outputs: {o: {url: 'null:'}, p: {url: 'null:'}}")),
              testing::IsEmpty());
}

TEST(ProblemsTest, WithoutTheEnvironmentOpenValuesAreNotJudged) {
  LoadOptions options = test::with_environment({});
  options.require_environment = false;
  EXPECT_THAT(test::problems_of("feeds:\n  a:\n    ring: '${RING}'\n"
                                "    input: {url: '${URL}', format: '${FORMAT}', size: '${SIZE}'}\n"
                                "    outputs: {o: {url: '${A}', segment: 1m}, p: {url: '${B}'}}\n",
                                options),
              testing::IsEmpty());
}

TEST(ProblemsTest, UnreadableFileIsAProblem) {
  const LoadResult result = load_config_file("/nonexistent/f.yaml");
  const auto* problems = std::get_if<std::vector<Problem>>(&result);
  ASSERT_NE(problems, nullptr);
  ASSERT_EQ(problems->size(), 1U);
  EXPECT_EQ(to_string(problems->front()),
            "/nonexistent/f.yaml:1:1: cannot be read: No such file or directory; name another file "
            "with -c");
}

TEST(ProblemsTest, DirectoryIsAProblem) {
  const LoadResult result = load_config_file("/");
  const auto* problems = std::get_if<std::vector<Problem>>(&result);
  ASSERT_NE(problems, nullptr);
  EXPECT_THAT(problems->front().message, testing::HasSubstr("Is a directory"));
}

}  // namespace
}  // namespace framelane
