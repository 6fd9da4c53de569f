#include <filesystem>
#include <string>

#include "tests/config/wrong_config.hpp"

namespace framelane {
namespace {

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
      "device, ring, lanes, slices, on_full, mask, skip, on_gap, analyse"}},
    {"MaskBesideACopiedStream",
     feed_with(", mask: {polygon: [[0, 0], [1, 0], [1, 1]]}, encodes: {m: {video: copy}}"),
     {"f.yaml:1:94: feeds.a.encodes.m.video: is copy, and feed \"a\" has a mask, which the "
      "camera's "
      "own stream would go around; give a codec, or remove this encode from the feed with null"}},
    {"Polygons",
     feed_with(", mask: [{polygon: [[0, 0], [1, 1], [1, 0], [0, 1]]}, {polygon: [[0, 0], [1, 1]]}, "
               "{polygon: [[0, 0], [1], 2]}, {polygon: [[0, 0], [1.5, 0], [-1, 1]]}, {polygon: 5}, "
               "{style: fill}]"),
     {"f.yaml:1:47: feeds.a.mask[0].polygon: crosses itself",
      "f.yaml:1:92: feeds.a.mask[1].polygon: has fewer than three points",
      "f.yaml:1:130: feeds.a.mask[2].polygon[1]: must be a point, such as [0.25, 0.5]",
      "f.yaml:1:135: feeds.a.mask[2].polygon[2]: must be a point, such as [0.25, 0.5]",
      "f.yaml:1:160: feeds.a.mask[3].polygon[1][0]: must be a number from 0 to 1 with at most six "
      "decimals, such as 0.25, not \"1.5\"",
      "f.yaml:1:170: feeds.a.mask[3].polygon[2][0]: must be a number from 0 to 1 with at most six "
      "decimals, such as 0.25, not \"-1\"",
      "f.yaml:1:190: feeds.a.mask[4].polygon: must be a list of points, such as [[0, 0], [0.5, 0], "
      "[0.5, 1]]",
      "f.yaml:1:194: feeds.a.mask[5].polygon: is missing; say what to cover, such as [[0, 0], "
      "[0.5, "
      "0], [0.5, 1]]"}},
    {"MaskBetweenPixels",
     "feeds: {a: {input: {url: x, format: rawvideo, pixel_format: gray, size: 64x48, rate: 1}, "
     "mask: "
     "[{polygon: [[0, 0], [1, 0], [1, 1]]}, {polygon: [[0.5001, 0], [0.5002, 0], [0.5002, "
     "1]]}]}}\n",
     {"f.yaml:1:134: feeds.a.mask[1]: lies between the pixels of 64x48 and covers none; make its "
      "polygon larger, or remove it"}},
    {"NoMasks",
     feed_with(", mask: []"),
     {"f.yaml:1:36: feeds.a.mask: is empty; remove it if nothing is to be masked"}},
    {"PixelsWithAColour",
     feed_with(", mask: {polygon: [[0, 0], [1, 0], [1, 1]], style: pixelate, color: \"#000000\"}"),
     {"f.yaml:1:96: feeds.a.mask.color: has no effect with style: pixelate; remove it"}},
    {"SkipOfRawVideo",
     "feeds: {a: {skip: nonkey, input: {url: x, format: rawvideo, pixel_format: bgra, size: 2x2, "
     "rate: 1}}}\n",
     {"f.yaml:1:19: feeds.a.skip: is for compressed video, and raw video is not decoded; remove "
      "it"}},
    {"BackoffUpsideDown",
     input_with(", reconnect: {first: 5s, max: 1s}"),
     {"f.yaml:1:48: feeds.a.input.reconnect.first: must not be longer than max, which is 1s"}},
    {"BackoffMaxBelowBuiltInFirst",
     input_with(", reconnect: {max: 500ms}"),
     {"f.yaml:1:46: feeds.a.input.reconnect.max: must not be shorter than first, which is 1s"}},
    {"LoopOnANetworkSource",
     "feeds: {a: {input: {url: 'rtsp://h/', loop: true}}}\n",
     {"f.yaml:1:45: feeds.a.input.loop: works only with files, and the url of feed \"a\" is not a "
      "file; remove it"}},
    {"RawWithoutItsShape",
     input_with(", format: rawvideo"),
     {"f.yaml:1:13: feeds.a.input.pixel_format: is missing; raw video has no header that says it; "
      "for example bgra",
      "f.yaml:1:13: feeds.a.input.rate: is missing; raw video has no header that says it; for "
      "example 30",
      "f.yaml:1:13: feeds.a.input.size: is missing; raw video has no header that says it; for "
      "example 1920x1080"}},
    {"LimitsOfFfmpegOnRawVideo",
     "limits: {pixels: 1x1, protocols: all}\ndefaults: {input: {limits: {streams: 2}}}\n" +
         input_with(", format: rawvideo, pixel_format: bgra, size: 4x4, rate: 1, decoders: all"),
     {"f.yaml:3:87: feeds.a.input.decoders: has no effect on raw video, which is not read through "
      "FFmpeg; remove it"}},
    {"RawKeysWithoutRaw",
     input_with(", size: 4x4"),
     {"f.yaml:1:29: feeds.a.input.size: is only for raw video; remove it, or set format: "
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
    {"OddSize",
     feed_with(", encodes: {m: {convert: {size: 853x479, format: yuv420p}}, "
               "n: {convert: {size: 853x-2, format: yuv422p}, video: {codec: libx264}}, "
               "o: {convert: {crop: 1x31+0+0, rotate: 270, format: nv12}}}"),
     {"f.yaml:1:60: feeds.a.encodes.m.convert.size: gives pictures of 853x479, and libx264 takes "
      "yuv420p only with an even width and height, such as 852x478 or 854x480",
      "f.yaml:1:108: feeds.a.encodes.n.convert.size: gives pictures of 853x-2, and libx264 takes "
      "yuv422p only with an even width, such as 852x-2 or 854x-2",
      "f.yaml:1:180: feeds.a.encodes.o.convert.crop: gives pictures of 31x1, and libx264 takes "
      "nv12 only with an even width and height, such as 32x2"}},
    {"OddSizeOfRawVideo",
     input_with(", format: rawvideo, size: 64x48, rate: 1, pixel_format: bgra}, encodes: {m: "
                "{convert: {size: 33x24}}"),
     {"f.yaml:1:120: feeds.a.encodes.m.convert.size: gives pictures of 33x24, and libx264 takes "
      "yuv420p only with an even width and height, such as 32x24 or 34x24"}},
    {"OddRawVideo",
     input_with(", format: rawvideo, size: 64x47, rate: 1, pixel_format: bgra"),
     {"f.yaml:1:53: feeds.a.input.size: gives pictures of 64x47, and libx264 takes yuv420p only "
      "with an even width and height, such as 64x46 or 64x48: give encode \"main\" of "
      "feed \"a\" a convert.size"}},
    {"OddRawVideoThatIsTurned",
     input_with(", format: rawvideo, size: 64x47, rate: 1, pixel_format: yuyv422}, encodes: {m: "
                "{convert: {rotate: 90}}, n: {convert: {size: 64x48}}, o: {video: {codec: ffv1}}"),
     {"f.yaml:1:53: feeds.a.input.size: gives pictures of 47x64, and libx264 takes yuv422p only "
      "with an even width, such as 46x64 or 48x64: give encode \"m\" of feed \"a\" a "
      "convert.size"}},
    {"FitWithoutSize",
     feed_with(", encodes: {m: {convert: {fit: contain, background: \"#101010\"}}}"),
     {"f.yaml:1:54: feeds.a.encodes.m.convert.fit: is how a picture gets into a size, and there is "
      "none; give size (100%: the picture's own), or remove it"}},
    {"BackgroundWithoutBars",
     feed_with(", encodes: {m: {convert: {size: 50%, background: \"#101010\"}}, "
               "n: {convert: {size: 64x64, fit: cover, background: \"#101010\"}}, "
               "o: {convert: {size: 64x64, fit: \"${F}\", background: \"#101010\"}}}"),
     {"f.yaml:1:65: feeds.a.encodes.m.convert.background: is the colour of bars, which only fit: "
      "contain makes; set that too, or remove it",
      "f.yaml:1:129: feeds.a.encodes.n.convert.background: is the colour of bars, which only fit: "
      "contain makes; set that too, or remove it",
      "f.yaml:1:186: feeds.a.encodes.o.convert.fit: the environment variable F is not set; set it, "
      "or write ${F:-default}"}},
    {"FilterWithoutSize",
     feed_with(", encodes: {m: {convert: {filter: area, rate: 5}}, n: {convert: {filter: area, "
               "rotate: 90}}}"),
     {"f.yaml:1:54: feeds.a.encodes.m.convert.filter: has no effect, because the size stays; give "
      "size, or remove it"}},
    {"FitInTheDefaults",
     "defaults: {encodes: {m: {convert: {fit: cover, filter: area}}}}\n"
     "feeds: {a: {input: {url: x}}, b: {input: {url: x}, encodes: {m: {convert: {size: 50%}}}}}\n",
     {"f.yaml:1:36: defaults.encodes.m.convert.fit: is how a picture gets into a size, and there "
      "is "
      "none; give size (100%: the picture's own), or remove it"}},
    {"ConvertWithCopy",
     feed_with(", encodes: {m: {video: copy, convert: {range: full}}}"),
     {"f.yaml:1:57: feeds.a.encodes.m.convert: has no effect with video: copy, which does not "
      "decode; remove one of the two"}},
    {"NoCodec",
     feed_with(", encodes: {m: {video: {codec: []}}}"),
     {"f.yaml:1:59: feeds.a.encodes.m.video.codec: is empty; name at least one encoder, such as "
      "libx264"}},
    {"CodecWithoutName",
     feed_with(", encodes: {m: {video: {codec: [{options: {a: 1}}]}}}"),
     {"f.yaml:1:60: feeds.a.encodes.m.video.codec[0].name: is missing; give FFmpeg's name of the "
      "encoder, such as libx264"}},
    {"AudioCodecWithoutName",
     feed_with(", encodes: {m: {audio: {codec: [{options: {a: 1}}]}}}"),
     {"f.yaml:1:60: feeds.a.encodes.m.audio.codec[0].name: is missing; give FFmpeg's name of the "
      "encoder, such as aac"}},
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
     {"f.yaml:1:49: feeds.a.outputs.o.url: must be text that is not empty and has no "
      "control characters"}},
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
     {"f.yaml:1:26: defaults.input.loop: works only with files, and the url of feed \"a\" is not a "
      "file; remove it"}},
    {"SamePlaceAsARelativeAndAnAbsolutePath",
     feed_with(", outputs: {o: {url: x.mp4}, p: {url: '" +
               (std::filesystem::current_path() / "y/../x.mp4").string() + "'}}"),
     {"f.yaml:1:66: feeds.a.outputs.p.url: output \"p\" of feed \"a\" would write to the same "
      "place as output \"o\" of feed \"a\"; put ${feed} or ${output} into the url"}},
    {"SegmentWithoutTime",
     feed_with(", outputs: {o: {url: 100%%.mp4, segment: 1m}}"),
     {"f.yaml:1:49: feeds.a.outputs.o.url: must contain the time, so that every segment gets a "
      "name of its own; for example /srv/rec/${feed}/%Y-%m-%d/%H%M%S.mp4"}},
    {"SegmentOfAPlaylist",
     feed_with(", outputs: {o: {url: 'cam.m3u8', segment: 1m}}"),
     {"f.yaml:1:70: feeds.a.outputs.o.segment: works only with plain files, and this output writes "
      "none; remove it"}},
    {"SegmentOnTheNetwork",
     feed_with(", outputs: {o: {url: 'srt://h:1/%H', segment: 1m}}"),
     {"f.yaml:1:74: feeds.a.outputs.o.segment: works only with plain files, and this output writes "
      "none; remove it"}},
    {"KeepWithoutSegment",
     feed_with(", outputs: {o: {url: x.mp4, keep: {age: 1d}}}"),
     {"f.yaml:1:56: feeds.a.outputs.o.keep: deletes old segments, and without segment there are "
      "none; set segment, or remove keep"}},
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
      "of feed \"cam\"; use separate folders, for example with ${feed}/"}},
    {"MinFreeDeletesToo",
     feed_with(", outputs: {o: {url: '/r/%s.ts', segment: 1m, keep: {min_free: 1G}}, "
               "p: {url: /r/1.ts}}"),
     {"f.yaml:1:106: feeds.a.outputs.p.url: can give the same names as output \"o\" of feed \"a\", "
      "so that keep of output \"o\" of feed \"a\" would delete files of output \"p\" of feed "
      "\"a\"; use separate folders, for example with ${feed}/"}},
    {"AnOutputWhoseFilesAnotherCouldDelete",
     feed_with(", outputs: {o: {url: '/r/%s.ts', segment: 1m, keep: {size: 1G}}, "
               "p: {url: /r/1.ts}}"),
     {"f.yaml:1:102: feeds.a.outputs.p.url: can give the same names as output \"o\" of feed \"a\", "
      "so that keep of output \"o\" of feed \"a\" would delete files of output \"p\" of feed "
      "\"a\"; use separate folders, for example with ${feed}/"}},
    {"AnOutputWhoseFilesAnotherCouldDeleteOnSomeDays",
     feed_with(", outputs: {o: {url: '/r/%u-7.ts', segment: 1d, keep: {size: 1G}}, "
               "p: {url: '/r/3-%u.ts'}}"),
     {"f.yaml:1:104: feeds.a.outputs.p.url: can give the same names as output \"o\" of feed \"a\", "
      "so that keep of output \"o\" of feed \"a\" would delete files of output \"p\" of feed "
      "\"a\"; use separate folders, for example with ${feed}/"}},
    {"APlaylistThatWouldDeleteRecordings",
     feed_with(", outputs: {rec: {url: /srv/cam-%s.ts}, hls: {url: /srv/cam.m3u8}}"),
     {"f.yaml:1:79: feeds.a.outputs.hls.url: can give the same names as output \"rec\" of feed "
      "\"a\", so that the playlist of output \"hls\" of feed \"a\" would delete files of output "
      "\"rec\" of feed \"a\"; use separate folders, for example with ${feed}/"}},
    {"RecordingsThatAPlaylistWouldDelete",
     feed_with(", outputs: {hls: {url: /srv/cam.m3u8}, rec: {url: /srv/cam-init-%Y.mp4}}"),
     {"f.yaml:1:78: feeds.a.outputs.rec.url: can give the same names as output \"hls\" of feed "
      "\"a\", so that the playlist of output \"hls\" of feed \"a\" would delete files of output "
      "\"rec\" of feed \"a\"; use separate folders, for example with ${feed}/"}},
    {"PlaylistsWithTheSameSegments",
     feed_with(", outputs: {a: {url: /srv/a.m3u8}, b: {url: /srv/b.m3u8, options: "
               "{hls_segment_filename: /srv/a-%03d.ts}}}"),
     {"f.yaml:1:72: feeds.a.outputs.b.url: can give the same names as output \"a\" of feed \"a\", "
      "so that the playlist of output \"b\" of feed \"a\" would delete files of output \"a\" of "
      "feed \"a\"; use separate folders, for example with ${feed}/"}},
    {"OneFileSpelledTwoWays",
     feed_with(", outputs: {o: {url: /srv/x.mp4}, p: {url: 'file:/srv/./y/../x.mp4'}}"),
     {"f.yaml:1:71: feeds.a.outputs.p.url: output \"p\" of feed \"a\" would write to the same "
      "place "
      "as output \"o\" of feed \"a\"; put ${feed} or ${output} into the url"}},
};
INSTANTIATE_TEST_SUITE_P(Feeds, WrongConfigTest, ::testing::ValuesIn(kFeeds), name_of);

}  // namespace
}  // namespace framelane
