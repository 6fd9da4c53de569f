#include "tests/config/wrong_config.hpp"

namespace framelane {
namespace {

std::string with_overlay(const std::string& overlay) {
  return feed_with(", encodes: {m: {overlay: " + overlay + "}}");
}

const std::vector<Wrong> kOverlays{
    {"Empty",
     with_overlay("[]"),
     {"f.yaml:1:53: feeds.a.encodes.m.overlay: is empty; remove it if nothing is to be drawn"}},
    {"NeitherTextNorImage",
     with_overlay("[{at: top}]"),
     {"f.yaml:1:54: feeds.a.encodes.m.overlay[0].text: is missing; give a text, or an image: a PNG "
      "file"}},
    {"TextAndImage",
     with_overlay("{text: x, image: /nowhere.png, box: none}"),
     {"f.yaml:1:54: feeds.a.encodes.m.overlay.text: has no effect on an image; remove it, or make "
      "it an entry of its own",
      "f.yaml:1:70: feeds.a.encodes.m.overlay.image: the image /nowhere.png cannot be read: No "
      "such file or directory",
      "f.yaml:1:84: feeds.a.encodes.m.overlay.box: has no effect on an image; remove it, or make "
      "it an entry of its own"}},
    {"KeysOfAnImage",
     with_overlay("{text: x, width: 3%}"),
     {"f.yaml:1:63: feeds.a.encodes.m.overlay.width: has no effect on a text; remove it, or make "
      "it an entry of its own"}},
    {"Values",
     with_overlay("{text: x, at: north, size: 0%, color: red, box: \"#12345\"}"),
     {"f.yaml:1:67: feeds.a.encodes.m.overlay.at: must be one of top-left, top, top-right, left, "
      "center, right, bottom-left, bottom, bottom-right, not \"north\"",
      "f.yaml:1:80: feeds.a.encodes.m.overlay.size: must be a percentage such as 4%, more than 0% "
      "and at most 100%, not \"0%\"",
      "f.yaml:1:91: feeds.a.encodes.m.overlay.color: must be a colour such as \"#102030\", or "
      "\"#10203080\" (red, green, blue, alpha), not \"red\"",
      "f.yaml:1:101: feeds.a.encodes.m.overlay.box: must be none or a colour such as \"#102030\", "
      "or \"#10203080\" (red, green, blue, alpha), not \"#12345\""}},
    {"ValuesOfAnImage",
     with_overlay("{image: /etc/passwd, width: 101%, opacity: 2}"),
     {"f.yaml:1:61: feeds.a.encodes.m.overlay.image: the image /etc/passwd cannot be read: Not a "
      "PNG file; give a PNG file",
      "f.yaml:1:81: feeds.a.encodes.m.overlay.width: must be a percentage such as 4%, more than 0% "
      "and at most 100%, not \"101%\"",
      "f.yaml:1:96: feeds.a.encodes.m.overlay.opacity: must be a number from 0 to 1 with at most "
      "six decimals, such as 0.25, not \"2\""}},
    {"Fields",
     with_overlay("[{text: \"%F %Q\"}, {text: \"100%\"}]"),
     {"f.yaml:1:61: feeds.a.encodes.m.overlay[0].text: has %Q, which is none of the fields "
      "that a text may have; write %% for a percent sign, and see docs/configuration.md, Overlays, "
      "for the fields",
      "f.yaml:1:78: feeds.a.encodes.m.overlay[1].text: ends in a single %; write %% for a percent "
      "sign"}},
    {"Control",
     with_overlay("{text: \"a\\tb\"}"),
     {"f.yaml:1:60: feeds.a.encodes.m.overlay.text: must be text of 1 to 1000 bytes that has no "
      "control characters but line feeds, not \"a?b\""}},
    {"Images",
     with_overlay("[{image: /nowhere.png}, {image: /dev/zero}, {image: /etc/passwd}]"),
     {"f.yaml:1:62: feeds.a.encodes.m.overlay[0].image: the image /nowhere.png cannot be read: No "
      "such file or directory",
      "f.yaml:1:85: feeds.a.encodes.m.overlay[1].image: the image /dev/zero is not a regular file",
      "f.yaml:1:105: feeds.a.encodes.m.overlay[2].image: the image /etc/passwd cannot be read: Not "
      "a PNG file; give a PNG file"}},
    {"Fonts",
     with_overlay("[{text: x, font: /nowhere.ttf}, {text: x, font: /dev/zero}, {text: x, font: "
                  "/etc/passwd}]"),
     {"f.yaml:1:70: feeds.a.encodes.m.overlay[0].font: \"/nowhere.ttf\" cannot be read: No "
      "such file or directory",
      "f.yaml:1:101: feeds.a.encodes.m.overlay[1].font: \"/dev/zero\" is a pipe or a device; "
      "give a TrueType or OpenType file",
      "f.yaml:1:129: feeds.a.encodes.m.overlay[2].font: \"/etc/passwd\" is no font that can be "
      "read; give a TrueType or OpenType file"}},
    {"NothingIsDecoded",
     feed_with(", encodes: {m: {video: copy, overlay: {text: x}}}"),
     {"f.yaml:1:57: feeds.a.encodes.m.overlay: has no effect with video: copy, which does not "
      "decode; remove one of the two"}},
};
INSTANTIATE_TEST_SUITE_P(Overlays, WrongConfigTest, ::testing::ValuesIn(kOverlays), name_of);

}  // namespace
}  // namespace framelane
