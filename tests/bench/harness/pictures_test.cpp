#include "bench/harness/pictures.hpp"

#include <gmock/gmock.h>

#include "bench/product/stage_feed.hpp"
#include "kernels/reference.hpp"

namespace framelane::bench {
namespace {

using ::testing::StartsWith;

constexpr Size kOdd{"", 37, 23};

TEST(PicturesTest, SeveralThreadsGiveTheReferencesResult) {
  FramePool pool;
  for (const PixelFormat target : {PixelFormat::kI420, PixelFormat::kNv12, PixelFormat::kI444}) {
    const Conversion convert = conversion(PixelFormat::kBgra, target, kOdd);
    const PooledImage source = std::move(make_frames(pool, convert.source, kOdd, 1)[0]);
    PlainImage expected(target, kOdd.width, kOdd.height);
    convert_reference(convert, as_const(source.image), expected.image);
    const PlainImage got = reference_result(convert, as_const(source.image));
    EXPECT_EQ(first_difference(as_const(expected.image), as_const(got.image)), "");
  }
}

TEST(PicturesTest, ADifferenceIsNamedWithItsPlane) {
  PlainImage one(PixelFormat::kI420, 8, 6), other(PixelFormat::kI420, 8, 6);
  EXPECT_EQ(first_difference(as_const(one.image), as_const(other.image)), "");
  other.image.row(2, 1)[3] = 5;
  EXPECT_EQ(first_difference(as_const(one.image), as_const(other.image)),
            "plane 2, row 1, byte 3 is 5 instead of 0, and 0 more differ");
  PlainImage gray(PixelFormat::kGray8, 8, 6), other_gray(PixelFormat::kGray8, 8, 6);
  other_gray.image.row(0, 5)[7] = 1;
  EXPECT_THAT(first_difference(as_const(gray.image), as_const(other_gray.image)),
              StartsWith("row 5, byte 7 is 1"));
}

TEST(PicturesTest, AccuracyIsTheShareOfSamplesAndTheLargestDifference) {
  PlainImage exact(PixelFormat::kI420, 4, 4), got(PixelFormat::kI420, 4, 4);
  got.image.row(0, 2)[1] = 3;
  exact.image.row(1, 0)[0] = 200;
  got.image.row(1, 0)[0] = 193;
  const Accuracy accuracy = accuracy_of(as_const(exact.image), as_const(got.image));
  EXPECT_DOUBLE_EQ(accuracy.share_off, 2.0 / 24);
  EXPECT_EQ(accuracy.most_off, 7);
}

TEST(PicturesTest, OthersAreTakenInTheSitingThatFlattersThem) {
  FramePool pool;
  Conversion convert = conversion(PixelFormat::kBgra, PixelFormat::kNv12, kOdd);
  const PooledImage source = std::move(make_frames(pool, convert.source, kOdd, 1)[0]);
  for (const Siting siting : {Siting::kLeft, Siting::kCenter, Siting::kTopLeft}) {
    Conversion sited = convert;
    sited.target_color.siting = siting;
    const PlainImage got = reference_result(sited, as_const(source.image));
    EXPECT_EQ(best_accuracy_of(convert, as_const(source.image), as_const(got.image)).share_off, 0);
  }
}

}  // namespace
}  // namespace framelane::bench
