#include "pipeline/feed/smaller_source.hpp"

#include <gmock/gmock.h>

#include <vector>

namespace framelane {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

/// A picture of 1920x1080, of which a part becomes one of another size.
Conversion shows(const Rect& crop, const PictureSize& size, const Orientation& orientation = {}) {
  Conversion conversion;
  conversion.width = 1920;
  conversion.height = 1080;
  conversion.scaling = Scaling{.crop = crop,
                               .target = size,
                               .place = {0, 0, size.width, size.height},
                               .orientation = orientation};
  return conversion;
}

constexpr Rect kWhole{0, 0, 1920, 1080};

std::string advice(const std::vector<Conversion>& conversions, const FeedOptions& options = {}) {
  return smaller_source_advice(options, conversions);
}

TEST(SmallerSourceTest, AThirdOfThePictureNeedsNoLargeOne) {
  EXPECT_EQ(advice({shows(kWhole, {320, 180}), shows(kWhole, {640, 360})}),
            "decodes 1920x1080, and its largest encode shows 640x360: a camera's second, smaller "
            "stream as input.url would cost far less; or set skip, if few pictures are enough");
}

TEST(SmallerSourceTest, MoreThanAThirdInAnyDirectionOfAnyEncodeDoes) {
  EXPECT_THAT(advice({shows(kWhole, {642, 360})}), IsEmpty());
  EXPECT_THAT(advice({shows(kWhole, {640, 362})}), IsEmpty());
  EXPECT_THAT(advice({shows(kWhole, {320, 180}), shows(kWhole, {1280, 720})}), IsEmpty());
  EXPECT_THAT(advice({shows(kWhole, {320, 180}), Conversion{}}), IsEmpty());
  EXPECT_THAT(advice({}), IsEmpty());
}

TEST(SmallerSourceTest, ItIsOfThePartThatIsTakenAsItIsTurned) {
  EXPECT_THAT(advice({shows({0, 0, 640, 360}, {640, 360})}), IsEmpty());
  EXPECT_THAT(advice({shows({0, 0, 640, 360}, {200, 120})}), HasSubstr("shows 200x120"));
  EXPECT_THAT(advice({shows(kWhole, {360, 640}, {.transposed = true})}),
              HasSubstr("shows 360x640"));
  EXPECT_THAT(advice({shows(kWhole, {360, 640})}), IsEmpty());
}

TEST(SmallerSourceTest, TheRemedySuitsTheFeed) {
  FeedOptions options;
  options.encodes.emplace_back().copy_video = true;
  EXPECT_THAT(advice({shows(kWhole, {64, 36})}, options), HasSubstr("input.url of a second feed"));
  options.input.raw.emplace();
  EXPECT_THAT(advice({shows(kWhole, {64, 36})}, options), StartsWith("reads 1920x1080, "));
  EXPECT_THAT(advice({shows(kWhole, {64, 36})}, options), HasSubstr("from their producer"));
  options.input.skip = Skip::kNonKey;
  EXPECT_THAT(advice({shows(kWhole, {64, 36})}, options), IsEmpty());
}

}  // namespace
}  // namespace framelane
