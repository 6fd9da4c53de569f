#include "pipeline/overlay/text_painter.hpp"

#include <glib.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string>

#include "kernels/picture_limits.hpp"
#include "pipeline/base/failure.hpp"
#include "pipeline/overlay/fonts.hpp"
#include "tests/pipeline/base/log_capture.hpp"
#include "tests/pipeline/overlay/system_fonts.hpp"

namespace framelane {
namespace {

const std::string kFonts = "/usr/share/fonts/truetype/dejavu/";
constexpr PictureSize kRoom{4000, 3000};
/// So many levels FreeType and HarfBuzz may round the same letter in another way.
constexpr int kRounding = 2;

OverlayOptions without_box() {
  OverlayOptions options;
  options.font = kFonts + "DejaVuSans.ttf";
  options.box.alpha = 0;
  return options;
}

RgbaPicture painted(const OverlayOptions& options, const std::string& text, int pixels = 40,
                    const PictureSize& room = kRoom) {
  return TextPainter(options, pixels, room).paint(text);
}

/// The columns in which something is drawn, begin and end.
std::pair<int, int> ink(const RgbaPicture& picture) {
  int begin = picture.width;
  int end = 0;
  for (int y = 0; y < picture.height; ++y) {
    for (int x = 0; x < picture.width; ++x) {
      if (picture.at(x, y)[3] <= kRounding) continue;
      begin = std::min(begin, x);
      end = std::max(end, x + 1);
    }
  }
  return {begin, end};
}

/// What is drawn, without what lies around it.
RgbaPicture ink_of(const RgbaPicture& picture) {
  const auto [left, right] = ink(picture);
  RgbaPicture part{right - left, 0, {}};
  int empty = 0;  // rows since the last that has something
  for (int y = 0; y < picture.height; ++y) {
    const auto row =
        std::vector<std::uint8_t>(picture.at(left, y), picture.at(left, y) + 4 * part.width);
    bool has_ink = false;
    for (std::size_t i = 3; i < row.size(); i += 4) has_ink = has_ink || row[i] > kRounding;
    if (!has_ink && part.height == 0) continue;
    empty = has_ink ? 0 : empty + 1;
    part.pixels.insert(part.pixels.end(), row.begin(), row.end());
    ++part.height;
  }
  part.height -= empty;
  part.pixels.resize(4 * static_cast<std::size_t>(part.width * part.height));
  return part;
}

/// The most by which the letters of two pictures cover a pixel differently; 255 if the pictures are
/// not of one size.
int difference(const RgbaPicture& a, const RgbaPicture& b) {
  if (a.width != b.width || a.height != b.height) return 255;
  int most = 0;
  for (std::size_t i = 3; i < a.pixels.size(); i += 4) {
    most = std::max(most, std::abs(a.pixels[i] - b.pixels[i]));
  }
  return most;
}

int ink_width(const RgbaPicture& picture) { return ink(picture).second - ink(picture).first; }

TEST(TextPainterTest, ATextIsAsHighAsItsFont) {
  const RgbaPicture small = painted(without_box(), "Xg", 20);
  const RgbaPicture large = painted(without_box(), "Xg", 60);
  EXPECT_NEAR(small.height, 20 * 1.17, 3);  // DejaVu's line is 1.164 of its size
  EXPECT_NEAR(large.height, 3 * small.height, 3);
  EXPECT_NEAR(large.width, 3 * small.width, 3);
}

TEST(TextPainterTest, GlyphsHaveTheTextsColorAndTheBoxItsOwn) {
  OverlayOptions options = without_box();
  options.color = {{255, 240, 10}, 255};
  options.box = {{1, 2, 3}, 128};
  const RgbaPicture picture = painted(options, "I", 64);
  const std::uint8_t* const corner = picture.at(0, 0);
  EXPECT_THAT(std::vector(corner, corner + 4), ::testing::ElementsAre(1, 2, 3, 128));
  const std::uint8_t* const centre = picture.at(picture.width / 2, picture.height / 2);
  EXPECT_THAT(std::vector(centre, centre + 4), ::testing::ElementsAre(255, 240, 10, 255));
}

TEST(TextPainterTest, ABoxIsLargerThanItsText) {
  OverlayOptions options = without_box();
  const RgbaPicture plain = painted(options, "text", 40);
  options.box.alpha = 255;
  const RgbaPicture boxed = painted(options, "text", 40);
  EXPECT_EQ(boxed.width, plain.width + 2 * 10);
  EXPECT_EQ(boxed.height, plain.height + 2 * 10);
}

TEST(TextPainterTest, ATransparentTextLeavesItsBox) {
  OverlayOptions options;
  options.color.alpha = 0;
  options.box = {{9, 9, 9}, 77};
  const RgbaPicture picture = painted(options, "text");
  for (int y = 0; y < picture.height; ++y) {
    for (int x = 0; x < picture.width; ++x) {
      ASSERT_EQ(picture.at(x, y)[0], 9);
      ASSERT_EQ(picture.at(x, y)[3], 77);
    }
  }
}

TEST(TextPainterTest, TheFontIsTheFiles) {
  OverlayOptions mono = without_box();
  mono.font = kFonts + "DejaVuSansMono.ttf";
  EXPECT_EQ(painted(mono, "iii").width, painted(mono, "mmm").width);
  EXPECT_LT(painted(without_box(), "iii").width, painted(without_box(), "mmm").width);
}

TEST(TextPainterTest, ALongLineIsBrokenInsideItsWidth) {
  const OverlayOptions options = without_box();
  const RgbaPicture one = painted(options, "words and words");
  const RgbaPicture broken = painted(options, "words and words", 40, {one.width / 2, 3000});
  EXPECT_LE(broken.width, one.width / 2 + 2);
  EXPECT_GE(broken.height, 2 * one.height - 2);
  const RgbaPicture long_word = painted(options, "wordsandwords", 40, {one.width / 2, 3000});
  EXPECT_LE(long_word.width, one.width / 2 + 2);
}

TEST(TextPainterTest, APictureIsNoLargerThanItsRoom) {
  std::string text;
  for (int i = 0; i < 500; ++i) text += "W ";
  for (const PictureSize& room : {PictureSize{100, 60}, {30, 500}, {1, 1}}) {
    for (const int pixels : {10, 200}) {
      for (const double shape : {1.0, 0.3, 7.0}) {
        const RgbaPicture picture = TextPainter(OverlayOptions{}, pixels, room, shape).paint(text);
        EXPECT_LE(picture.width, room.width);
        EXPECT_LE(picture.height, room.height);
      }
    }
  }
}

TEST(TextPainterTest, ATextOfBlanksIsABoxOfItsOwnWidth) {
  OverlayOptions options;
  options.across = Along::kEnd;
  EXPECT_LT(painted(options, "   ").width, 100);
}

TEST(TextPainterTest, TheFilesFontNeedsNoOther) {
  OverlayOptions mono = without_box();
  mono.font = kFonts + "DejaVuSansMono.ttf";
  const RgbaPicture with_others = painted(mono, "mii");
  const testing::SystemFonts none("");
  EXPECT_LE(difference(painted(mono, "mii"), with_others), kRounding);
}

TEST(TextPainterTest, ATextLooksTheSameWhateverTheSystemsRulesAre) {
  OverlayOptions mono = without_box();
  mono.font = kFonts + "DejaVuSansMono.ttf";
  const auto with_rule = [&](const std::string& name, const std::string& value) {
    const testing::SystemFonts fonts("<match target=\"font\"><edit name=\"" + name +
                                     "\" mode=\"assign\">" + value + "</edit></match>");
    return painted(mono, "mii", 17);
  };
  const RgbaPicture usual = painted(mono, "mii", 17);
  for (const std::string style : {"hintnone", "hintslight", "hintfull"}) {
    EXPECT_EQ(difference(with_rule("hintstyle", "<const>" + style + "</const>"), usual), 0)
        << style;
  }
  EXPECT_EQ(difference(with_rule("antialias", "<bool>false</bool>"), usual), 0);
  EXPECT_EQ(difference(with_rule("autohint", "<bool>true</bool>"), usual), 0);
}

TEST(TextPainterTest, WherePixelsAreWideATextHasFewerOfThemAcross) {
  OverlayOptions options;
  options.font = kFonts + "DejaVuSans.ttf";
  for (const double shape : {0.5, 1.4545, 3.0}) {
    for (const std::uint8_t alpha : {0, 255}) {
      options.box.alpha = alpha;
      const RgbaPicture square = painted(options, "words", 60);
      const RgbaPicture picture = TextPainter(options, 60, kRoom, shape).paint("words");
      EXPECT_NEAR(picture.width * shape, square.width, 3 * shape) << shape;
      EXPECT_EQ(picture.height, square.height) << shape;
    }
  }
}

TEST(TextPainterTest, WherePixelsAreWideLinesAreBrokenInsideTheirWidth) {
  const OverlayOptions options = without_box();
  const RgbaPicture one = painted(options, "words and words");
  const auto paint = [&](int width) {
    return TextPainter(options, 40, {width, 3000}, 2).paint("words and words");
  };
  EXPECT_EQ(paint(one.width / 2 + 4).height, one.height);
  const RgbaPicture broken = paint(one.width / 2 - 4);
  EXPECT_GE(broken.height, 2 * one.height - 2);
  EXPECT_LE(broken.width, one.width / 2 - 4);
}

TEST(TextPainterTest, ALineOnVeryWidePixelsIsBrokenWhereItCannotBeScaled) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += "words ";
  constexpr double kShape = 16;
  const RgbaPicture picture = TextPainter(without_box(), 40, {4000, 3000}, kShape).paint(text);
  const RgbaPicture one = painted(without_box(), "words");
  EXPECT_LE(picture.width, kMaxPictureSide / kShape);
  EXPECT_GT(picture.width, kMaxPictureSide / kShape - 10);
  EXPECT_GE(picture.height, 2 * one.height - 2);
}

TEST(TextPainterTest, ALetterWithoutWidthShowsNothing) {
  for (const double shape : {0.5, 1.0, 2.0}) {
    const RgbaPicture picture = TextPainter(without_box(), 40, kRoom, shape).paint("\u200b");
    EXPECT_EQ(picture.width, 1);
    EXPECT_EQ(ink_width(picture), -1) << shape;
  }
}

TEST(TextPainterTest, LettersThatAFontLacksAreThoseOfAnother) {
  OverlayOptions mono = without_box();
  mono.font = kFonts + "DejaVuSansMono.ttf";
  const std::string alef = "\u05d0";  // Mono has none
  const auto with_fonts = [&](const std::string& xml) {
    const testing::SystemFonts fonts(xml);
    return ink_of(painted(mono, alef, 60));
  };
  const RgbaPicture letter = ink_of(painted(without_box(), alef, 60));
  ASSERT_GT(letter.width, 10);
  const RgbaPicture drawn =
      with_fonts("<dir>" + kFonts +
                 "</dir><selectfont><rejectfont><glob>*</glob></rejectfont><acceptfont><glob>" +
                 kFonts + "DejaVuSans.ttf</glob></acceptfont></selectfont>");
  EXPECT_LE(difference(drawn, letter), kRounding);
  // A box, which says that there is no letter.
  EXPECT_GT(difference(with_fonts(""), letter), kRounding);
}

TEST(TextPainterTest, OfLettersThatNoFontHasTheLogSaysSoOnce) {
  const testing::LogCapture log;
  const OverlayOptions options = without_box();
  TextPainter painter(options, 40, kRoom);
  painter.paint("12:00");
  EXPECT_EQ(log.count("no font on this system has"), 0u);
  painter.paint("\U0010FFF0 12:01");  // for private use
  painter.paint("\U0010FFF1 12:02");
  EXPECT_EQ(log.count("no font on this system has"), 1u);
}

TEST(TextPainterTest, OfALongTextTheLogShowsTheBegin) {
  const testing::LogCapture log;
  const OverlayOptions options = without_box();
  std::string text = "\U0010FFF0";
  for (int i = 0; i < 100; ++i) text += "ä";
  TextPainter(options, 40, kRoom).paint(text);
  EXPECT_EQ(log.count("äää…\" is drawn with"), 1u);
  EXPECT_EQ(log.count(text.substr(0, 4 + 2 * 60)), 0u);
}

TEST(TextPainterTest, WhatPangoWarnsOfIsInTheLogAndItsErrorsAreOurs) {
  const testing::LogCapture log;
  painted(without_box(), "gate");
  g_log_structured("Pango", G_LOG_LEVEL_WARNING, "MESSAGE", "%s", "a font is odd\n");
  g_log_structured("Pango", G_LOG_LEVEL_DEBUG, "MESSAGE", "%s", "a font is fine");
  EXPECT_EQ(log.count("Pango: a font is odd"), 1u);
  EXPECT_EQ(log.count("a font is fine"), 0u);
  // As fields: a text that GLib has formatted would be lost in the throw.
  const GLogField error[] = {{"GLIB_DOMAIN", "Pango", -1}, {"MESSAGE", "none opens", -1}};
  EXPECT_THROW(g_log_structured_array(G_LOG_LEVEL_ERROR, error, std::size(error)), FeedError);
}

TEST(TextPainterTest, LinesOfATextAtTheRightEndTogether) {
  OverlayOptions options = without_box();
  options.across = Along::kEnd;
  const RgbaPicture picture = painted(options, "II\nIIIIII");
  RgbaPicture upper{picture.width, picture.height / 2, picture.pixels};
  EXPECT_NEAR(ink(upper).second, ink(picture).second, 1);
  EXPECT_GT(ink(upper).first, ink(picture).first + 10);
}

TEST(TextPainterTest, HebrewRunsFromRightToLeft) {
  const OverlayOptions options = without_box();
  const RgbaPicture both = painted(options, "\u05d0\u05d9");  // alef, which is wide, and yod
  const int alef = ink_width(painted(options, "\u05d0"));
  const int yod = ink_width(painted(options, "\u05d9"));
  ASSERT_GT(alef, yod + 5);
  // The last columns are alef's: the picture is empty only left of yod and between the two.
  const auto [begin, end] = ink(both);
  int gap = begin;
  for (; gap < end; ++gap) {
    bool empty = true;
    for (int y = 0; y < both.height; ++y) empty = empty && both.at(gap, y)[3] == 0;
    if (empty) break;
  }
  EXPECT_NEAR(gap - begin, yod, 1);
}

TEST(TextPainterTest, ArabicLettersAreJoined) {
  const OverlayOptions options = without_box();
  const std::string letters[] = {"\u0633", "\u0644", "\u0645"};  // seen, lam, meem
  int apart = 0;
  std::string word;
  for (const std::string& letter : letters) {
    apart += painted(options, letter).width;
    word += letter;
  }
  EXPECT_LT(painted(options, word).width, apart - 10);
}

TEST(TextPainterTest, NothingIsDrawnOfAnEmptyText) {
  const RgbaPicture picture = painted(without_box(), "");
  EXPECT_EQ(picture.width, 0);
  EXPECT_TRUE(picture.pixels.empty());
}

TEST(TextPainterTest, WhatIsNoFontIsRefused) {
  for (const std::string file : {"/nowhere.ttf", "/dev/zero", "/etc/passwd"}) {
    EXPECT_TRUE(why_no_font(file)) << file;
    OverlayOptions options;
    options.font = file;
    EXPECT_THROW(TextPainter(options, 20, kRoom), FeedError) << file;
  }
  EXPECT_FALSE(why_no_font(kFonts + "DejaVuSans.ttf"));
}

TEST(TextPainterTest, ASystemWithoutFontsIsAnErrorThatSaysWhatToInstall) {
  const testing::SystemFonts none("");
  std::string why;
  try {
    TextPainter(OverlayOptions{}, 20, kRoom);
  } catch (const FeedError& error) {
    EXPECT_EQ(error.code(), FeedFault::kConfiguration);
    why = error.what();
  }
  EXPECT_THAT(why, ::testing::HasSubstr("fonts-dejavu-core"));
  EXPECT_THAT(why, ::testing::HasSubstr("apart from folders that this user may not read"));
}

// The sanitizers bring a heap of their own.
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(TextPainterTest, WhatIsKnownOfTheSystemsFontsIsFreed) {
  const auto used_after = [](int painters) {
    for (int i = 0; i < painters; ++i) {
      painted(OverlayOptions{}, "gate");
      painted(without_box(), "gate");
    }
    return ::mallinfo2().uordblks;
  };
  const std::size_t before = used_after(3);
  EXPECT_LT(used_after(20), before + (1 << 20));
}
#endif

TEST(TextPainterTest, OnlyUtf8CanBeDrawn) {
  EXPECT_TRUE(is_utf8("gate ü \u05d0"));
  EXPECT_FALSE(is_utf8("gate \xfc"));
}

}  // namespace
}  // namespace framelane
