// What the suites do with whole pictures. Everything runs on the calling thread, except
// reference_result, which uses all processors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/conversion.hpp"
#include "kernels/image_view.hpp"
#include "kernels/luma_histogram.hpp"
#include "pipeline/frames/frame_pool.hpp"

namespace framelane::bench {

struct Size {
  const char* name;  ///< empty where it does not matter
  int width;
  int height;
};
inline constexpr Size k8K{"8K", 7680, 4320};
inline constexpr Size k4K{"4K", 3840, 2160};
inline constexpr Size k1080p{"1080p", 1920, 1080};

/// RGB or YUV, both in full range, to BT.709 in limited range.
Conversion conversion(PixelFormat source, PixelFormat target, const Size& size);

/// Bytes of all pixels, without the padding of rows.
std::size_t image_bytes(PixelFormat format, const Size& size);
/// Bytes of all pictures that are made of one frame.
std::size_t made_bytes(std::span<const Conversion> conversions);
/// Bytes that a conversion reads and writes, together.
std::size_t moved_bytes(const Conversion& conversion);

/// Pictures of random bytes, each different. Every call starts the same random sequence. Throws
/// FeedError(kMemory).
std::vector<PooledImage> make_frames(FramePool& pool, PixelFormat format, const Size& size,
                                     int count);

/// "yuv420p to nv12, full to limited": both formats, and what changes between colours of YUV.
std::string formats_of(const Conversion& conversion);
/// The same for all that is made of one frame: "bgra to nv12 at 1280x720 + 854x480". Sizes are left
/// out if there is one picture, of the frame's size.
std::string formats_of(std::span<const Conversion> conversions);

/// A picture in ordinary memory, laid out like those of a FramePool. It is not registered with a
/// GPU and does not count as locked memory.
struct PlainImage {
  PlainImage(PixelFormat format, int width, int height);
  PlainImage(PlainImage&&) = default;

  ImageView image;

 private:
  std::vector<std::uint8_t> memory_;
};

/// The exact result: what the reference converter makes of `source`. Uses all processors.
PlainImage reference_result(const Conversion& conversion, const ConstImageView& source);

/// Of all rows. Requires has_luma(image.format).
LumaHistogram luma_of(const ConstImageView& image);

/// Empty, or where `got` first differs from `expected`, of the same format and size: "row 7, byte
/// 3 is 5 instead of 7, and 2 more differ" (in that row), with the plane where there are several.
std::string first_difference(const ConstImageView& expected, const ConstImageView& got);

/// Sets all bytes to 0, so that an old result cannot be taken for a new one: random pixels and
/// limited range never give a picture of zeros.
void spoil(const ImageView& image);

/// How far a result is from the exact one.
struct Accuracy {
  double share_off = 0;  ///< of all samples, 0..1
  int most_off = 0;      ///< the largest difference of one
};
Accuracy accuracy_of(const ConstImageView& exact, const ConstImageView& got);
/// The same in whichever chroma siting gives the best result for `got`: not every library says
/// which siting it means.
Accuracy best_accuracy_of(Conversion conversion, const ConstImageView& source,
                          const ConstImageView& got);

}  // namespace framelane::bench
