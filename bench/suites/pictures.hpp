// What the suites do with whole pictures. No threads but reference_result's own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/conversion.hpp"
#include "kernels/image_view.hpp"
#include "kernels/luma_histogram.hpp"

namespace framelane::bench {

/// "yuv420p to nv12, full to limited": both formats, and what changes between colours of YUV.
std::string formats_of(const Conversion& conversion);

/// A picture in ordinary memory, laid out as those of a FramePool: a GPU does not know it, and it
/// does not count as locked.
struct PlainImage {
  PlainImage(PixelFormat format, int width, int height);
  PlainImage(PlainImage&&) = default;

  ImageView image;

 private:
  std::vector<std::uint8_t> memory_;
};

/// What `source` has to become, by the reference, on all processors.
PlainImage reference_result(const Conversion& conversion, const ConstImageView& source);

/// Of all rows. Requires has_luma(image.format).
LumaHistogram luma_of(const ConstImageView& image);

/// Empty, or where `got` first differs from `expected`, of the same format and size: "row 7, byte
/// 3 is 5 instead of 7, and 2 more differ" (in that row), with the plane where there are several.
std::string first_difference(const ConstImageView& expected, const ConstImageView& got);

/// So that what was there before cannot be taken for a result: all bytes are 0, which limited range
/// and random pixels are not.
void spoil(const ImageView& image);

/// How far a result is from the exact one.
struct Accuracy {
  double share_off = 0;  ///< of all samples, 0..1
  int most_off = 0;      ///< the largest difference of one
};
Accuracy accuracy_of(const ConstImageView& exact, const ConstImageView& got);
/// The same in whichever siting flatters `got` most: not everybody says which is meant.
Accuracy best_accuracy_of(Conversion conversion, const ConstImageView& source,
                          const ConstImageView& got);

}  // namespace framelane::bench
