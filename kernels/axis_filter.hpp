#pragma once

#include <cstdint>
#include <vector>

namespace framelane {

/// How samples are weighted where a picture's size changes. Each has rational weights.
enum class ScaleFilter : std::uint8_t {
  kBicubic,   ///< Keys' cubic convolution with a = -1/2, also called Catmull-Rom
  kSpline36,  ///< three pieces of cubics, as in Panorama Tools
  kBilinear,
  kArea,  ///< the mean over as much as the target's samples are apart, or a sample of the source
};

/// The samples of a channel along one axis, which may be subsampled.
struct AxisGrid {
  bool half = false;  ///< one sample for two pixels
  /// Of a half grid: how far its first sample is behind the first pixel, in half pixels. 0: cosited
  /// with it. 1: between it and the next. A mirrored line of a source may also have 2 and -1.
  int offset = 0;

  /// How many samples there are for so many pixels.
  int samples(int pixels) const { return half ? (pixels + 1) / 2 : pixels; }
  /// The grid of a line of so many pixels if it is read backwards.
  AxisGrid mirrored(int pixels) const {
    return half ? AxisGrid{true, (pixels % 2 == 0 ? 2 : 0) - offset} : *this;
  }
  friend bool operator==(const AxisGrid&, const AxisGrid&) = default;
};

/// What one sample is made of: numerators[j] / denominator of the source's sample first + j. The
/// numerators add up to the denominator.
struct AxisWeights {
  int first = 0;
  std::vector<std::int64_t> numerators;
  std::int64_t denominator = 1;
};

/// How the samples of a line are made of those of a line of another size or grid: the definition of
/// scaling, which docs/scaling.md explains.
///
/// Where the number of pixels stays, the filters are those of kernels/chroma_taps.hpp. Otherwise a
/// target's sample has a place in the source; the filter is laid around it, and widened if the
/// target's samples are further apart than the source's; weights are normalised. Beyond an edge the
/// last sample is repeated.
class AxisFilter {
 public:
  struct Shape {
    int source_pixels = 1;
    int target_pixels = 1;
    AxisGrid source;
    AxisGrid target;
    ScaleFilter filter = ScaleFilter::kBicubic;
    /// If both grids are half: chroma goes over the pixels' sites, since the matrix changes.
    bool over_sites = false;
  };

  /// Sizes are at most kMaxPictureSide, source_pixels at most kMostReduction * target_pixels.
  explicit AxisFilter(const Shape& shape) : shape_(shape) {}

  int source_samples() const { return shape_.source.samples(shape_.source_pixels); }
  int target_samples() const { return shape_.target.samples(shape_.target_pixels); }
  /// The weights of the target's sample i.
  AxisWeights at(int i) const;

 private:
  AxisWeights unscaled(int i) const;
  AxisWeights scaled(int i) const;

  Shape shape_;
};

}  // namespace framelane
