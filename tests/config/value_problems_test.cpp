#include "tests/config/wrong_config.hpp"

namespace framelane {
namespace {

const std::vector<Wrong> kTypes{
    {"FeedsMissing",
     "log: {}\n",
     {"f.yaml:1:1: feeds is missing; name at least one feed under it"}},
    {"FeedsEmpty", "feeds: {}\n", {"f.yaml:1:8: feeds: is empty; name at least one feed"}},
    {"NullSection",
     "log:\nfeeds: {a: {input: {url: x}}}\n",
     {"f.yaml:1:1: log: has no value, and nothing is inherited that null could remove; give it a "
      "value, or remove the key"}},
    {"NullFeed",
     "feeds:\n  a:\n",
     {"f.yaml:2:3: feeds.a: has no value; write {} if it has nothing but the defaults"}},
    {"NullRemovesNothing",
     feed_with(", outputs: {recrod: null}"),
     {"f.yaml:1:40: feeds.a.outputs.recrod: has no value, and nothing is inherited that null could "
      "remove; give it a value, or remove the key"}},
    {"NullInDefaults",
     "defaults: {ring: ~}\nfeeds: {a: {input: {url: x}}}\n",
     {"f.yaml:1:12: defaults.ring: has no value, and nothing is inherited that null could remove; "
      "give it a value, or remove the key"}},
    {"UnknownKey",
     input_with(", reconect: {}"),
     {"f.yaml:1:29: feeds.a.input.reconect: is not a known key; did you mean \"reconnect\"?"}},
    {"UnknownKeyFarFromAll",
     "log: {destination: x}\nfeeds: {a: {input: {url: x}}}\n",
     {"f.yaml:1:7: log.destination: is not a known key; known here: level, format"}},
    {"ScalarForMap",
     "feeds: {a: {input: rtsp://10.0.0.4/}}\n",
     {"f.yaml:1:20: feeds.a.input: must be a map with keys such as url, format, options, timeout, "
      "reconnect, decoder, loop, pace, color, protocols, formats, decoders, addresses, limits, "
      "pixel_format, size, rate, pitch, timestamps, not "
      "\"rtsp://10.0.0.4/\""}},
    {"InputLimitsOutOfRange",
     input_with(", limits: {pixels: 100000x2, streams: 0, probe_size: 1k, playlist_size: 2G}"),
     {"f.yaml:1:46: feeds.a.input.limits.pixels: must be a size such as 1920x1080, at most "
      "16384x16384, not \"100000x2\"",
      "f.yaml:1:65: feeds.a.input.limits.streams: must be from 1 to 10000, not \"0\"",
      "f.yaml:1:80: feeds.a.input.limits.probe_size: must be from 2048 to 1G, not \"1k\"",
      "f.yaml:1:99: feeds.a.input.limits.playlist_size: must be from 1k to 1G, not \"2G\""}},
    {"AddressesOfNoKind",
     input_with(", addresses: [loopback, private]"),
     {"f.yaml:1:51: feeds.a.input.addresses[1]: must be one of loopback, link_local, not "
      "\"private\""}},
    {"NothingAllowed",
     input_with(", protocols: []"),
     {"f.yaml:1:40: feeds.a.input.protocols: is empty; name what is allowed, or remove it"}},
    {"MapForScalar",
     feed_with(", ring: {}"),
     {"f.yaml:1:36: feeds.a.ring: must be a whole number, from 1 to 256, not a map"}},
    {"ListForScalar",
     feed_with(", on_full: [drop]"),
     {"f.yaml:1:39: feeds.a.on_full: must be one of auto, block, drop, not a list"}},
    {"GapTooShort",
     feed_with(", on_gap: {split_after: 10ms}"),
     {"f.yaml:1:52: feeds.a.on_gap.split_after: must be from 100ms to 1d, not \"10ms\""}},
    {"GapThatIsNoDuration",
     feed_with(", on_gap: {split_after: nevr}"),
     {"f.yaml:1:52: feeds.a.on_gap.split_after: must be never or a duration such as 500ms, 10s, "
      "5m, "
      "1h or 7d, from 100ms to 1d, not \"nevr\"; did you mean \"never\"?"}},
    {"GapThatIsNoMap",
     feed_with(", on_gap: 5s"),
     {"f.yaml:1:38: feeds.a.on_gap: must be a map with keys such as split_after, not \"5s\""}},
    {"GapWithAnUnknownKey",
     feed_with(", on_gap: {split: 5s}"),
     {"f.yaml:1:39: feeds.a.on_gap.split: is not a known key; known here: split_after"}},
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
     {"f.yaml:1:26: feeds.a.input.url: must be text that is not empty and has no control "
      "characters"}},
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
     {"f.yaml:1:42: feeds.a.input.options.a: must be text or a number, without the character NUL, "
      "not a map"}},
    {"ControlCharacters",
     "feeds: {a: {input: {url: \"x\\0y\"}, outputs: {o: {url: \"x\\ny.mp4\"}}}}\n",
     {"f.yaml:1:26: feeds.a.input.url: must be text that is not empty and has no control "
      "characters",
      "f.yaml:1:54: feeds.a.outputs.o.url: must be text that is not empty and has no control "
      "characters"}},
    {"NulInAnOption",
     input_with(", options: {headers: \"a\\0b\"}"),
     {"f.yaml:1:48: feeds.a.input.options.headers: must be text or a number, without the character "
      "NUL"}},
    {"FreeSpace",
     feed_with(", outputs: {a: {url: a%s.ts, segment: 1m, keep: {min_free: 0}}, "
               "b: {url: b%s.ts, segment: 1m, keep: {min_free: 100%}}, "
               "c: {url: c%s.ts, segment: 1m, keep: {min_free: 5g}}, "
               "d: {url: d%s.ts, segment: 1m, keep: {min_free: [5%]}}}"),
     {"f.yaml:1:87: feeds.a.outputs.a.keep.min_free: must be a size in bytes such as 5G, or a part "
      "of the file system such as 5%, not \"0\"",
      "f.yaml:1:139: feeds.a.outputs.b.keep.min_free: must be a size in bytes such as 5G, or a "
      "part "
      "of the file system such as 5%, not \"100%\"",
      "f.yaml:1:194: feeds.a.outputs.c.keep.min_free: must be a size in bytes such as 5G, or a "
      "part "
      "of the file system such as 5%, not \"5g\"",
      "f.yaml:1:247: feeds.a.outputs.d.keep.min_free: must be a size in bytes such as 5G, or a "
      "part "
      "of the file system such as 5%, not a list"}},
    {"DeviceOfAFeed",
     feed_with(", device: gpu"),
     {"f.yaml:1:38: feeds.a.device: must be auto, cpu, cuda or cuda:N, not \"gpu\""}},
    {"LimitsOfAllInputs",
     "limits: {pixels: 100000x2, probe_size: null, protocols: nope, stream: 1}\n" + feed_with(""),
     {"f.yaml:1:18: limits.pixels: must be a size such as 1920x1080, at most 16384x16384, not "
      "\"100000x2\"",
      "f.yaml:1:28: limits.probe_size: has no value, and nothing is inherited that null could "
      "remove; give it a value, or remove the key",
      "f.yaml:1:57: limits.protocols: \"nope\" is not a protocol that this FFmpeg reads from; did "
      "you mean \"pipe\"?",
      "f.yaml:1:63: limits.stream: is not a known key; did you mean \"streams\"?"}},
    {"UnsetVariable",
     feed_with(", ring: '${RING}'"),
     {"f.yaml:1:36: feeds.a.ring: the environment variable RING is not set; set it, or write "
      "${RING:-default}"}},
    {"SeveralVariablesOfOneValue",
     "feeds: {a: {input: {url: 'rtsp://${USER_A}:${KEY_B}@h/${feed}$'}}}\n",
     {"f.yaml:1:26: feeds.a.input.url: has a lone $; write $$ for a plain $",
      "f.yaml:1:26: feeds.a.input.url: the environment variable KEY_B is not set; set it, or write "
      "${KEY_B:-default}",
      "f.yaml:1:26: feeds.a.input.url: the environment variable USER_A is not set; set it, or "
      "write ${USER_A:-default}"}},
    {"OutputVariableInAnInput",
     "feeds: {a: {input: {url: '${output}'}}}\n",
     {"f.yaml:1:26: feeds.a.input.url: ${output} has a value only inside outputs"}},
    {"FeedVariableOutsideFeeds",
     "log: {level: '${feed}'}\nfeeds: {a: {input: {url: x}}}\n",
     {"f.yaml:1:14: log.level: ${feed} has a value only inside feeds"}},
};
INSTANTIATE_TEST_SUITE_P(Types, WrongConfigTest, ::testing::ValuesIn(kTypes), name_of);

}  // namespace
}  // namespace framelane
