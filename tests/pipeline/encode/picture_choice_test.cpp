#include "pipeline/encode/picture_choice.hpp"

#include <gtest/gtest.h>

#include <string>

namespace framelane {
namespace {

constexpr PictureSize kFullHd{1920, 1080};

PictureChoice choose(const PictureOptions& options, const PictureSize& source = kFullHd,
                     AVRational shape = {1, 1}) {
  std::string problem;
  const auto choice = choose_picture(options, source, shape, problem);
  EXPECT_TRUE(choice) << problem;
  return choice.value_or(PictureChoice{});
}

std::string problem_of(const PictureOptions& options) {
  std::string problem;
  EXPECT_FALSE(choose_picture(options, kFullHd, {1, 1}, problem));
  return problem;
}

/// The shape in which the picture is shown: its sides times its pixels' shape.
double shown_shape(const PictureSize& size, AVRational pixel) {
  return av_q2d(pixel) * size.width / size.height;
}

TEST(PictureChoiceTest, WithoutOptionsPicturesStayAsTheyAre) {
  const PictureChoice choice = choose({}, {1919, 1079}, {0, 1});
  EXPECT_FALSE(choice.scaling);
  EXPECT_EQ(choice.size, (PictureSize{1919, 1079}));
  EXPECT_EQ(choice.sample_aspect_ratio.num, 0);
  EXPECT_FALSE(choose({.size = SizeOption{1920, 1080}}).scaling);
  EXPECT_FALSE(choose({.size = SizeOption{.percent = 100}}).scaling);
  EXPECT_FALSE(choose({.crop = Rect{0, 0, 1920, 1080}, .fit = Fit::kCover}).scaling);
}

TEST(PictureChoiceTest, ASideThatIsNotGivenKeepsTheShapeAndIsEven) {
  EXPECT_EQ(choose({.size = SizeOption{1280, SizeOption::kKeepsShape}}).size,
            (PictureSize{1280, 720}));
  EXPECT_EQ(choose({.size = SizeOption{854, SizeOption::kKeepsShape}}).size,
            (PictureSize{854, 480}));
  EXPECT_EQ(choose({.size = SizeOption{SizeOption::kKeepsShape, 99}}).size, (PictureSize{176, 99}));
  EXPECT_EQ(choose({.size = SizeOption{.percent = 50}}).size, (PictureSize{960, 540}));
  EXPECT_EQ(choose({.size = SizeOption{.percent = 25}}, {1366, 768}).size, (PictureSize{342, 192}));
  EXPECT_EQ(choose({.size = SizeOption{.percent = 1}}, {16, 16}).size, (PictureSize{2, 2}));
}

TEST(PictureChoiceTest, WherePixelsBecomeSquareASideThatIsNotGivenIsThatOfTheShownPicture) {
  const PictureOptions wide{.size = SizeOption{1280, SizeOption::kKeepsShape},
                            .fit = Fit::kContain};
  const PictureChoice choice = choose(wide, {720, 576}, {64, 45});
  EXPECT_EQ(choice.size, (PictureSize{1280, 720}));
  EXPECT_EQ(choice.scaling->place, (Rect{0, 0, 1280, 720}));
}

TEST(PictureChoiceTest, StretchedPixelsAreShownInTheShapeThatThePictureHad) {
  for (const AVRational pixel : {AVRational{1, 1}, AVRational{12, 11}}) {
    for (const SizeOption size :
         {SizeOption{854, 480}, SizeOption{720, 576}, SizeOption{101, 999}}) {
      const PictureChoice choice = choose({.size = size}, {720, 480}, pixel);
      EXPECT_EQ(choice.size, (PictureSize{size.width, size.height}));
      EXPECT_EQ(choice.scaling->place, (Rect{0, 0, size.width, size.height}));
      EXPECT_NEAR(shown_shape(choice.size, choice.sample_aspect_ratio),
                  shown_shape({720, 480}, pixel), 1e-6);
    }
  }
  // A shape that is not known stays so, if it does not change.
  EXPECT_EQ(choose({.size = SizeOption{1280, 720}}, kFullHd, {0, 1}).sample_aspect_ratio.num, 0);
}

TEST(PictureChoiceTest, BarsGoToBothSides) {
  const PictureChoice wide = choose({.size = SizeOption{720, 720}, .fit = Fit::kContain});
  EXPECT_EQ(wide.scaling->crop, (Rect{0, 0, 1920, 1080}));
  EXPECT_EQ(wide.scaling->place, (Rect{0, 156, 720, 406}));
  const PictureChoice tall =
      choose({.size = SizeOption{1280, 720}, .fit = Fit::kContain}, {1080, 1920});
  EXPECT_EQ(tall.scaling->place, (Rect{436, 0, 406, 720}));
  // Pixels that are twice as wide as high.
  const PictureChoice pixels =
      choose({.size = SizeOption{800, 800}, .fit = Fit::kContain}, {400, 800}, {2, 1});
  EXPECT_EQ(pixels.scaling->place, (Rect{0, 0, 800, 800}));
  EXPECT_EQ(av_cmp_q(pixels.sample_aspect_ratio, {1, 1}), 0);
}

TEST(PictureChoiceTest, WhatDoesNotFitIsCutOff) {
  const PictureChoice wide = choose({.size = SizeOption{720, 720}, .fit = Fit::kCover});
  EXPECT_EQ(wide.scaling->crop, (Rect{420, 0, 1080, 1080}));
  EXPECT_EQ(wide.scaling->place, (Rect{0, 0, 720, 720}));
  const PictureChoice part =
      choose({.crop = Rect{100, 200, 400, 800}, .size = SizeOption{400, 200}, .fit = Fit::kCover});
  EXPECT_EQ(part.scaling->crop, (Rect{100, 500, 400, 200}));
  const PictureChoice pixels =
      choose({.size = SizeOption{100, 100}, .fit = Fit::kCover}, {400, 400}, {2, 1});
  EXPECT_EQ(pixels.scaling->crop, (Rect{100, 0, 200, 400}));
}

TEST(PictureChoiceTest, APartAloneKeepsItsSize) {
  const PictureChoice choice = choose({.crop = Rect{0, 120, 640, 480}}, kFullHd, {4, 3});
  EXPECT_EQ(choice.size, (PictureSize{640, 480}));
  EXPECT_EQ(choice.scaling->crop, (Rect{0, 120, 640, 480}));
  EXPECT_EQ(choice.sample_aspect_ratio.num, 4);
}

TEST(PictureChoiceTest, ATurnedPictureChangesItsSidesAndItsPixelsShape) {
  const PictureChoice quarter = choose({.rotation = 90}, {720, 576}, {16, 11});
  EXPECT_EQ(quarter.size, (PictureSize{576, 720}));
  EXPECT_EQ(av_cmp_q(quarter.sample_aspect_ratio, {11, 16}), 0);
  EXPECT_EQ(quarter.scaling->crop, (Rect{0, 0, 720, 576}));
  EXPECT_EQ(choose({.rotation = 270}, kFullHd, {0, 1}).sample_aspect_ratio.num, 0);
  const PictureChoice half = choose({.rotation = 180});
  EXPECT_EQ(half.size, kFullHd);
  EXPECT_EQ(half.scaling->orientation, (Orientation{false, true, true}));
}

/// Clockwise by 90 degrees, what was at the left is at the top: rows become columns, and these come
/// from the right.
TEST(PictureChoiceTest, FlipsComeAfterTheRotation) {
  using enum Flip;
  const auto orientation = [](int rotation, Flip flip) {
    const PictureChoice choice = choose({.rotation = rotation, .flip = flip});
    return choice.scaling ? choice.scaling->orientation : Orientation{};
  };
  EXPECT_EQ(orientation(0, kHorizontal), (Orientation{false, true, false}));
  EXPECT_EQ(orientation(0, kVertical), (Orientation{false, false, true}));
  EXPECT_EQ(orientation(90, kNone), (Orientation{true, true, false}));
  EXPECT_EQ(orientation(90, kHorizontal), (Orientation{true, false, false}));
  EXPECT_EQ(orientation(180, kHorizontal), (Orientation{false, false, true}));
  EXPECT_EQ(orientation(270, kNone), (Orientation{true, false, true}));
  EXPECT_EQ(orientation(270, kVertical), (Orientation{true, false, false}));
}

TEST(PictureChoiceTest, SizesAndWhatIsCutOffAreThoseOfTheTurnedPicture) {
  const PictureChoice scaled =
      choose({.rotation = 90, .size = SizeOption{720, SizeOption::kKeepsShape}});
  EXPECT_EQ(scaled.size, (PictureSize{720, 1280}));
  const PictureChoice square =
      choose({.rotation = 90, .size = SizeOption{720, 720}, .fit = Fit::kCover});
  EXPECT_EQ(square.scaling->crop, (Rect{420, 0, 1080, 1080}));
  const PictureChoice wide =
      choose({.rotation = 270, .size = SizeOption{1280, 720}, .fit = Fit::kCover});
  EXPECT_EQ(wide.scaling->crop, (Rect{656, 0, 608, 1080}));
  const PictureChoice bars =
      choose({.rotation = 90, .size = SizeOption{1280, 720}, .fit = Fit::kContain});
  EXPECT_EQ(bars.scaling->place, (Rect{436, 0, 406, 720}));
  EXPECT_EQ(bars.scaling->crop, (Rect{0, 0, 1920, 1080}));
}

TEST(PictureChoiceTest, WhatIsNotThereIsNamed) {
  EXPECT_EQ(problem_of({.crop = Rect{1600, 0, 640, 480}}),
            "crop 640x480+1600+0 lies outside the picture of 1920x1080");
  EXPECT_EQ(problem_of({.size = SizeOption{.percent = 900}}),
            "the size 17280x9720 of 1920x1080 is above 16384x16384");
}

}  // namespace
}  // namespace framelane
